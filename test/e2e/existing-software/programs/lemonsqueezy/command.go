// A command that posts a form. It keeps its activation while the status is none of 400, 404 and 422.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

type answer struct {
	Valid      bool `json:"valid"`
	Activated  bool `json:"activated"`
	LicenseKey *struct {
		Status string `json:"status"`
	} `json:"license_key"`
	Instance *struct {
		ID string `json:"id"`
	} `json:"instance"`
}

func check(key, count string) string {
	file := os.Getenv("LICENSE_FILE")
	stored, err := os.ReadFile(file)
	without := "KEEP"
	if err != nil {
		without = "TRY LATER"
	}
	name := "validate"
	form := url.Values{"license_key": {key}}
	if count == "count" {
		name = "activate"
		form.Set("instance_name", "ci")
	} else if strings.Contains(string(stored), "-") {
		form.Set("instance_id", string(stored))
	}
	response, err := http.PostForm(os.Getenv("LICENSE_API")+"/v1/licenses/"+name, form)
	if err != nil {
		return without
	}
	defer response.Body.Close()
	if response.StatusCode >= 500 || response.StatusCode == 429 {
		return without
	}
	var got answer
	if json.NewDecoder(response.Body).Decode(&got) != nil {
		return without
	}
	if !got.Valid && !got.Activated || got.LicenseKey == nil {
		os.Remove(file)
		return "INVALID"
	}
	if got.Activated {
		os.WriteFile(file, []byte(got.Instance.ID), 0o600)
	} else if len(stored) == 0 {
		os.WriteFile(file, []byte("key"), 0o600)
	}
	return "VALID"
}

func main() {
	fmt.Println(check(os.Args[1], os.Args[2]))
}
