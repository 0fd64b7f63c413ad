package connector_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"qm/edge/connector"
)

func Example() {
	// A queue that lets nobody through yet, in place of https://queue.example.com.
	queue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"action":"queue","reason":"no_token","waitingRoomUrl":"https://queue.example.com/w/my-room"}`)
	}))
	defer queue.Close()

	queued, err := connector.New(connector.Config{Room: "my-room", Server: queue.URL})
	if err != nil {
		panic(err)
	}
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "The shop") })
	site := httptest.NewServer(queued(shop))
	defer site.Close()

	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(site.URL + "/sale")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, res.Header.Get("X-QM-Decision"))
	// Output: 302 queue; reason=no_token
}
