<?php
/**
 * What the connector decides, and nothing of WordPress: the rules are those of the connectors' contract, and its numbers are in brackets.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

final class Queue_Manager_Decision {

	const MAX_URL   = 4096;   // bytes of an address that goes along; it is never cut, for half an address is another page
	const MAX_AGENT = 512;    // bytes
	const MAX_SAME  = 4;      // cookies of one name that are looked at
	const KEEP_SEC  = 604800; // the longest that a door session may last; how long it does last the server judges
	const RETRY_SEC = 5;

	/** Members: decision, reason; serve: the site answers, with headers beside its own. Otherwise status, headers and body are the answer. */
	public $decision;
	public $reason;
	public $serve  = true;
	public $status = 0;
	public $body   = '';
	/** A list of header lines. */
	public $headers = array();

	/**
	 * Decides about one request. Whatever goes wrong is a decision, too.
	 *
	 * @param array    $config room, base, key, fail ("closed" or "open"), timeout (seconds), closed_page (HTML).
	 * @param array    $visit  method, url (the whole address as the browser asked for it, in ASCII), address (IP), cookie, accept, mode
	 *                         (Sec-Fetch-Mode), agent; "" where the request says nothing.
	 * @param callable $get    Asks: gets an address, headers by name and seconds; gives [status, body], or "timeout" or "unreachable".
	 */
	public static function about( array $config, array $visit, $get ) {
		if ( 'OPTIONS' === $visit['method'] ) {
			return new self( 'pass', 'method' );
		}
		$head = 'HEAD' === $visit['method'];
		list( $url, $code, $coded ) = self::without_code( $visit['url'] );
		$keys   = self::cookies( $visit['cookie'], 'qm_dk_' . $config['room'] );
		$tokens = $head ? array() : self::cookies( $visit['cookie'], 'qm_' . $config['room'] );
		$said   = self::ask( $config, $visit, $url, $head ? '' : $code, $keys, $tokens, $get );

		$result = new self( $said['decision'], $said['reason'] );
		if ( ! $head ) {
			$result->keep( $config, $visit['url'], $said, $keys, $tokens );
		}
		if ( ! $coded && ( 'pass' === $result->decision || 'open' === $result->decision ) ) {
			return $result;
		}
		$result->serve = false;
		array_push( $result->headers, 'Cache-Control: no-store', 'Vary: Cookie', 'Referrer-Policy: no-referrer' );
		$page = self::is_page( $visit );
		if ( 'queue' === $result->decision ) {
			$to = self::is_address( $said['waitingRoomUrl'] ) ? $said['waitingRoomUrl'] : $config['base'] . '/w/' . $config['room'];
			if ( $page ) {
				$result->redirect( 'POST' === $visit['method'] ? 303 : 302, self::with_return( $to, $url ) );
			} else {
				$result->json( 429, array( 'error' => 'You have to wait in line first.', 'code' => 'queued', 'waitingRoomUrl' => $to ) );
			}
		} elseif ( $coded ) {
			$result->redirect( $head || 'GET' === $visit['method'] ? 302 : 307, $url );
		} elseif ( $page ) {
			$result->refuse( 503, 'text/html', $config['closed_page'] );
		} else {
			$result->json( 503, array( 'error' => 'The waiting room does not answer. Please try again.', 'code' => 'queue_unavailable' ) );
		}
		if ( $head ) {
			$result->body = '';
		}
		return $result;
	}

	private function __construct( $decision, $reason ) {
		$this->decision  = $decision;
		$this->reason    = $reason;
		$this->headers[] = 'X-QM-Decision: ' . $decision . '; reason=' . $reason;
	}

	private function redirect( $status, $location ) {
		$this->status    = $status;
		$this->headers[] = 'Location: ' . $location;
	}

	private function refuse( $status, $type, $body ) {
		$this->status    = $status;
		$this->headers[] = 'Content-Type: ' . $type . '; charset=utf-8';
		$this->headers[] = 'Retry-After: ' . self::RETRY_SEC;
		$this->body      = $body;
	}

	private function json( $status, array $body ) {
		$this->refuse( $status, 'application/json', json_encode( $body, JSON_UNESCAPED_SLASHES ) );
	}

	// Asking (4, 5).

	private static function ask( array $config, array $visit, $url, $code, array $keys, array $tokens, $get ) {
		$query = array( 'roomId' => $config['room'] );
		if ( strlen( $url ) <= self::MAX_URL ) {
			$query['url'] = $url;
		}
		if ( $tokens ) {
			$query['token'] = $tokens[0];
		}
		if ( '' !== $code ) {
			$query['code'] = $code;
		}
		$headers = array( 'Accept' => 'application/json' );
		if ( $keys ) {
			$headers['X-QM-Session'] = $keys[0];
		}
		$more = array();
		foreach ( array_slice( $keys, 1 ) as $key ) {
			$more[] = 'qm_dk_' . $config['room'] . '=' . $key;
		}
		foreach ( array_slice( $tokens, 1 ) as $token ) {
			$more[] = 'qm_' . $config['room'] . '=' . $token;
		}
		if ( $more ) {
			$headers['Cookie'] = implode( '; ', $more );
		}
		if ( '' !== $config['key'] && '' !== $visit['address'] ) {
			$headers['Authorization'] = 'Bearer ' . $config['key'];
			$query['ip']              = $visit['address'];
			if ( '' !== $visit['agent'] ) {
				$query['agent'] = substr( $visit['agent'], 0, self::MAX_AGENT );
			}
		}
		$query   = http_build_query( $query, '', '&', PHP_QUERY_RFC3986 );
		$failed  = array( 'decision' => $config['fail'] );
		$started = microtime( true );
		$answer  = null;
		foreach ( array( '/api/v1/check', '/api/check' ) as $path ) {
			$left = $config['timeout'] - ( microtime( true ) - $started ); // for both questions together
			if ( $left <= 0 ) {
				return $failed + array( 'reason' => 'timeout' );
			}
			$answer = call_user_func( $get, $config['base'] . $path . '?' . $query, $headers, $left );
			if ( ! is_array( $answer ) ) {
				return $failed + array( 'reason' => $answer );
			}
			if ( 404 !== $answer[0] ) {
				break;
			}
		}
		if ( 200 !== $answer[0] ) {
			return $failed + array( 'reason' => 'status_' . $answer[0] );
		}
		$said = json_decode( $answer[1], false, 32 );
		if ( ! ( $said instanceof stdClass ) || ! isset( $said->action ) || ( 'pass' !== $said->action && 'queue' !== $said->action ) ) {
			return $failed + array( 'reason' => 'bad_answer' );
		}
		$reason = isset( $said->reason ) && is_string( $said->reason ) && preg_match( '/^[a-z0-9_]{1,64}$/D', $said->reason ) ? $said->reason : 'unspecified';
		return array(
			'decision'       => 'pass' === $said->action && 'no_room' === $reason ? 'open' : $said->action,
			'reason'         => $reason,
			'waitingRoomUrl' => isset( $said->waitingRoomUrl ) ? $said->waitingRoomUrl : null,
			'clear'          => isset( $said->clearToken ) && true === $said->clearToken,
			'sess'           => isset( $said->sess ) ? $said->sess : null,
			'token'          => isset( $said->token ) ? $said->token : null,
		);
	}

	// Addresses (2, 7).

	/**
	 * The address without hand-over codes and otherwise as it is spelt; the last code, "" where that is none; whether there was one.
	 */
	private static function without_code( $url ) {
		$parts = explode( '?', $url, 2 );
		$code  = '';
		$kept  = array();
		$pairs = isset( $parts[1] ) ? explode( '&', $parts[1] ) : array();
		foreach ( $pairs as $pair ) {
			if ( 0 === strpos( $pair, 'qm_code=' ) ) {
				$code = substr( $pair, strlen( 'qm_code=' ) );
			} else {
				$kept[] = $pair;
			}
		}
		if ( count( $kept ) === count( $pairs ) ) {
			return array( $url, '', false );
		}
		return array( $parts[0] . ( $kept ? '?' . implode( '&', $kept ) : '' ), self::is_value( $code ) ? $code : '', true );
	}

	private static function with_return( $to, $url ) {
		if ( strlen( $url ) > self::MAX_URL ) {
			return $to;
		}
		$parts = explode( '#', $to, 2 );
		$glue  = false === strpos( $parts[0], '?' ) ? '?' : '&';
		return $parts[0] . $glue . 'qm_return=' . rawurlencode( $url ) . ( isset( $parts[1] ) ? '#' . $parts[1] : '' );
	}

	/** An absolute http or https address that a header may hold. */
	private static function is_address( $text ) {
		return is_string( $text ) && preg_match( '#^https?://[^/?\#\\\\]#i', $text ) && preg_match( '/^[\x21-\x7e]+$/D', $text )
			&& is_string( parse_url( $text, PHP_URL_HOST ) );
	}

	// Credentials and cookies (3, 6).

	private static function is_value( $text ) {
		return is_string( $text ) && preg_match( '/^[A-Za-z0-9._-]{1,1024}$/D', $text ) && 'null' !== $text && 'undefined' !== $text;
	}

	private static function cookies( $header, $name ) {
		$found = array();
		foreach ( explode( ';', $header ) as $pair ) {
			$pair = trim( $pair );
			if ( 0 !== strpos( $pair, $name . '=' ) ) {
				continue;
			}
			$value = preg_replace( '/^"(.*)"$/D', '$1', substr( $pair, strlen( $name ) + 1 ) );
			if ( self::is_value( $value ) && ! in_array( $value, $found, true ) && count( $found ) < self::MAX_SAME ) {
				$found[] = $value;
			}
		}
		return $found;
	}

	private function keep( array $config, $url, array $said, array $keys, array $tokens ) {
		$key   = 'qm_dk_' . $config['room'];
		$token = 'qm_' . $config['room'];
		$set   = ! empty( $said['clear'] ) ? array( $key => '', $token => '' ) : array();
		if ( isset( $said['sess'] ) && self::is_value( $said['sess'] ) && ( ! $keys || $said['sess'] !== $keys[0] ) ) {
			$set[ $key ] = $said['sess'];
		}
		if ( isset( $said['token'] ) && self::is_value( $said['token'] ) && ( ! $tokens || $said['token'] !== $tokens[0] ) ) {
			$set[ $token ] = $said['token'];
		}
		foreach ( $set as $name => $value ) {
			$this->headers[] = 'Set-Cookie: ' . $name . '=' . $value . '; Path=/; Max-Age=' . ( '' === $value ? 0 : self::KEEP_SEC ) . '; HttpOnly'
				. ( 0 === stripos( $url, 'https:' ) ? '; Secure' : '' ) . '; SameSite=Lax';
		}
	}

	/** What a person looks at, and not what a script asks for, which could not follow a redirect to another origin (7). */
	private static function is_page( array $visit ) {
		if ( ! in_array( $visit['method'], array( 'GET', 'HEAD', 'POST' ), true ) ) {
			return false;
		}
		return '' !== $visit['mode'] ? 'navigate' === $visit['mode'] : '' === $visit['accept'] || false !== stripos( $visit['accept'], 'text/html' );
	}
}
