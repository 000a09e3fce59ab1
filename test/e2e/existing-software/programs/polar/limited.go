// A server that reads the limit of uses from the answer, and looks at the status code first.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

type answer struct {
	Status     string `json:"status"`
	Usage      int    `json:"usage"`
	LimitUsage *int   `json:"limit_usage"`
}

func check(key, count string) string {
	body := map[string]any{"key": key, "organization_id": os.Getenv("ORGANIZATION_ID")}
	if count == "count" {
		body["increment_usage"] = 2
	}
	encoded, _ := json.Marshal(body)
	file := os.Getenv("LICENSE_FILE")
	url := os.Getenv("LICENSE_API") + "/v1/customer-portal/license-keys/validate"
	response, err := http.Post(url, "application/json", bytes.NewReader(encoded))
	if err != nil {
		if _, err := os.Stat(file); err == nil {
			return "KEEP"
		}
		return "TRY LATER"
	}
	defer response.Body.Close()
	var got answer
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&got) != nil {
		os.Remove(file)
		return "INVALID"
	}
	os.WriteFile(file, []byte(key), 0o600)
	if got.LimitUsage != nil && got.Usage > *got.LimitUsage {
		return "TOO MANY USES"
	}
	return "VALID"
}

func main() {
	fmt.Println(check(os.Args[1], os.Args[2]))
}
