package httpapi

import (
	"testing"

	"qm/edge/connector"
)

// Proves: registry
func TestWordPressLearnsOfItsUpdate(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		got := w.browser("198.51.100.1").get("/api/v1/connectors/wordpress/update").want(t, 200, "")
		m, ok := connector.Named("wordpress")
		if !ok {
			t.Fatal("this build has no connector for WordPress")
		}
		if got.json["version"] != m.Version || got.json["slug"] != "queue-manager" || got.json["package"] != "https://queue.shop.example/connectors/wordpress/latest.zip" ||
			got.json["sha256"] != m.SHA256() || got.json["requires"] == "" || got.json["requires_php"] == "" || got.json["name"] != "Queue Manager" {
			t.Errorf("WordPress is told %s", got.body)
		}
	})
}
