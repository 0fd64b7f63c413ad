___INFO___

{
  "type": "TAG",
  "id": "cvt_temp_public_id",
  "version": 1,
  "securityGroups": [],
  "displayName": "Queue Manager waiting room",
  "brand": {
    "id": "brand_dummy",
    "displayName": "Queue Manager"
  },
  "description": "Puts the pages of this site behind a waiting room of your own Queue Manager server, and tells the server's operators that the tag is installed.",
  "containerContexts": [
    "WEB"
  ]
}


___TEMPLATE_PARAMETERS___

[
  {
    "type": "TEXT",
    "name": "server",
    "displayName": "Server",
    "simpleValueType": true,
    "help": "The address at which visitors reach your Queue Manager server, such as https://queue.example.com",
    "valueHint": "https://queue.example.com",
    "valueValidators": [
      {
        "type": "NON_EMPTY"
      },
      {
        "type": "REGEX",
        "args": [
          "^https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._/-]*)?$"
        ],
        "errorMessage": "An https address without a query, such as https://queue.example.com"
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "room",
    "displayName": "Room",
    "simpleValueType": true,
    "help": "The id of the waiting room, as the console shows it",
    "valueHint": "shop",
    "valueValidators": [
      {
        "type": "NON_EMPTY"
      },
      {
        "type": "REGEX",
        "args": [
          "^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$"
        ],
        "errorMessage": "3 to 64 of a-z, 0-9 and -, neither first nor last a -"
      }
    ]
  },
  {
    "type": "SELECT",
    "name": "fail",
    "displayName": "When the server does not answer",
    "simpleValueType": true,
    "defaultValue": "closed",
    "macrosInSelect": false,
    "selectItems": [
      {
        "value": "closed",
        "displayValue": "Send visitors to the waiting room"
      },
      {
        "value": "open",
        "displayValue": "Show the page"
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "timeout",
    "displayName": "Time-out in milliseconds",
    "simpleValueType": true,
    "defaultValue": "2000",
    "help": "How long an answer may take, 100 to 10000",
    "valueValidators": [
      {
        "type": "REGEX",
        "args": [
          "^[0-9]{3,5}$"
        ],
        "errorMessage": "100 to 10000"
      }
    ]
  },
  {
    "type": "CHECKBOX",
    "name": "hide",
    "checkboxText": "Hide the page until the first decision",
    "simpleValueType": true,
    "defaultValue": false,
    "help": "A tag manager loads after the page has begun to show. This hides it for the time-out at most."
  },
  {
    "type": "CHECKBOX",
    "name": "checkIn",
    "checkboxText": "Check the installation when a page loads",
    "simpleValueType": true,
    "defaultValue": true,
    "help": "One small image from your server. The console then lists this site among the connectors that checked in; the tag counts as failed where the check finds a fault."
  }
]


___SANDBOXED_JS_FOR_WEB_TEMPLATE___

const injectScript = require('injectScript');
const sendPixel = require('sendPixel');
const getUrl = require('getUrl');
const encodeUriComponent = require('encodeUriComponent');
const templateStorage = require('templateStorage');
const makeString = require('makeString');

const version = '1.0.0';
let server = makeString(data.server || '').trim();
while (server.charAt(server.length - 1) === '/') server = server.slice(0, -1);
const room = makeString(data.room || '').trim();

// Tag Manager checks fields when they are typed, not what a variable holds when the tag fires.
if (server.indexOf('https://') !== 0 || server.indexOf('?') >= 0 || server.indexOf('#') >= 0 || room === '') {
  data.gtmOnFailure();
  return;
}

// Tag Manager can set no attributes on the script, so its settings are in its address.
let address = server + '/snippet/qm.js?room=' + encodeUriComponent(room) +
    '&fail=' + (data.fail === 'open' ? 'open' : 'closed');
if (data.timeout) address = address + '&timeout=' + encodeUriComponent(makeString(data.timeout));
if (data.hide) address = address + '&hide=1';

// The line does not wait for the check: a fault of the installation must not cost the site its waiting room.
const loaded = () => {
  const key = 'qm:' + server + ':' + room;
  if (!data.checkIn || templateStorage.getItem(key)) {
    data.gtmOnSuccess();
    return;
  }
  templateStorage.setItem(key, true);
  const port = getUrl('port');
  const origin = getUrl('protocol') + '://' + getUrl('host') + (port ? ':' + port : '');
  sendPixel(server + '/api/v1/verify.gif?roomId=' + encodeUriComponent(room) + '&origin=' + encodeUriComponent(origin) +
      '&connector=gtm&version=' + version, data.gtmOnSuccess, data.gtmOnFailure);
};
injectScript(address, loaded, data.gtmOnFailure, address);


___WEB_PERMISSIONS___

[
  {
    "instance": {
      "key": {
        "publicId": "inject_script",
        "versionId": "1"
      },
      "param": [
        {
          "key": "urls",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 1,
                "string": "https://*/*"
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "send_pixel",
        "versionId": "1"
      },
      "param": [
        {
          "key": "allowedUrls",
          "value": {
            "type": 1,
            "string": "specific"
          }
        },
        {
          "key": "urls",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 1,
                "string": "https://*/*"
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "get_url",
        "versionId": "1"
      },
      "param": [
        {
          "key": "urlParts",
          "value": {
            "type": 1,
            "string": "specific"
          }
        },
        {
          "key": "protocol",
          "value": {
            "type": 8,
            "boolean": true
          }
        },
        {
          "key": "host",
          "value": {
            "type": 8,
            "boolean": true
          }
        },
        {
          "key": "port",
          "value": {
            "type": 8,
            "boolean": true
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "access_template_storage",
        "versionId": "1"
      },
      "param": []
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  }
]


___TESTS___

scenarios:
- name: The script is loaded with the settings in its address
  code: |-
    mock('injectScript', (url, onSuccess) => {
      assertThat(url).isEqualTo('https://queue.example/snippet/qm.js?room=shop&fail=closed&timeout=2000');
      onSuccess();
    });
    runCode({server: 'https://queue.example/', room: 'shop', fail: 'closed', timeout: '2000', checkIn: false});
    assertApi('gtmOnSuccess').wasCalled();
    assertApi('sendPixel').wasNotCalled();
- name: An address that is none loads nothing
  code: |-
    runCode({server: 'http://queue.example', room: 'shop'});
    assertApi('injectScript').wasNotCalled();
    assertApi('gtmOnFailure').wasCalled();


___NOTES___

Served by your own server at /connectors/gtm/latest.zip.
