// A command that posts a form, and allows three uses of a license key.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
)

type answer struct {
	Success  bool `json:"success"`
	Uses     int  `json:"uses"`
	Purchase struct {
		Refunded     bool `json:"refunded"`
		Chargebacked bool `json:"chargebacked"`
	} `json:"purchase"`
}

func check(key, count string) string {
	form := url.Values{"product_id": {os.Getenv("PRODUCT_ID")}, "license_key": {key}}
	if count != "count" {
		form.Set("increment_uses_count", "false")
	}
	file := os.Getenv("LICENSE_FILE")
	response, err := http.PostForm(os.Getenv("LICENSE_API")+"/v2/licenses/verify", form)
	if err != nil {
		if _, err := os.Stat(file); err == nil {
			return "KEEP"
		}
		return "TRY LATER"
	}
	defer response.Body.Close()
	var got answer
	json.NewDecoder(response.Body).Decode(&got)
	if !got.Success || got.Purchase.Refunded || got.Purchase.Chargebacked {
		os.Remove(file)
		return "INVALID"
	}
	os.WriteFile(file, []byte(key), 0o600)
	if got.Uses > 5 {
		return "TOO MANY USES"
	}
	return "VALID"
}

func main() {
	fmt.Println(check(os.Args[1], os.Args[2]))
}
