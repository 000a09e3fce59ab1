// Checks a license key when it starts, and counts a use: license-check LICENSE-KEY
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	timeout  = 5 * time.Second
	deadline = 10 * time.Second
	grace    = 14 * 24 * time.Hour
)

type answer struct {
	Code string `json:"code"`
	Data struct {
		// nil if another program than an agent answers.
		Enabled *bool `json:"enabled"`
		Uses    *int  `json:"uses"`
		// Absent if the license has no end.
		ExpiresAt  *time.Time `json:"expires_at"`
		GraceUntil *time.Time `json:"grace_until"`
		documents
	} `json:"data"`
}

type agent struct {
	http   *http.Client
	base   string
	secret string
}

// newAgent speaks to LATCHKEY_URL, over TCP or a Unix socket.
func newAgent() agent {
	base := getenv("LATCHKEY_URL", "http://127.0.0.1:8787")
	// This transport ignores the proxy of the environment, which would see the secret.
	transport := &http.Transport{}
	client := &http.Client{
		Timeout:   timeout,
		Transport: transport,
		// A redirect would send the secret to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if path, isSocket := strings.CutPrefix(base, "unix:"); isSocket {
		base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	return agent{client, base, os.Getenv("LATCHKEY_SECRET")}
}

func (a agent) call(request *http.Request) (int, answer, error) {
	request.Header.Set("product-secret-key", a.secret)
	request.Header.Set("Accept", "application/problem+json, application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return 0, answer{}, err
	}
	defer response.Body.Close()
	var body answer
	err = json.NewDecoder(response.Body).Decode(&body)
	return response.StatusCode, body, err
}

// verify gives the verdict, and until when a valid verdict counts without the agent.
func (a agent) verify(key string) (said string, until time.Time) {
	said, until = "undetermined", time.Now().Add(grace)
	query := url.Values{"license_key": {key}}.Encode()
	request, err := http.NewRequest(http.MethodGet, a.base+"/api/v2/license/verify?"+query, nil)
	if err != nil {
		return
	}
	status, body, err := a.call(request)
	license := body.Data
	end := license.GraceUntil
	if end == nil {
		end = license.ExpiresAt
	}
	if end != nil && end.Before(until) {
		until = *end
	}
	switch {
	case err != nil:
	case status == http.StatusOK && license.Enabled != nil && *license.Enabled:
		said = "valid"
	case status == http.StatusOK && license.Enabled != nil:
		said = "refused: disabled"
	case status == http.StatusNotFound && body.Code == "license_not_found":
		said = "refused: not found"
	}
	return
}

// leased gives what the vendor has signed for this device: another program on the port cannot say it.
func (a agent) leased(key string) verdict {
	nonce := newKey()
	query := url.Values{"license_key": {key}, "product_key": {product}, "nonce": {nonce}}.Encode()
	request, err := http.NewRequest(http.MethodGet, a.base+"/agent/v1/lease?"+query, nil)
	if err != nil {
		return verdict{said: "undetermined"}
	}
	status, body, err := a.call(request)
	switch {
	case err == nil && status == http.StatusNotFound && body.Code == "license_not_found":
		return verdict{said: "refused: not found"}
	case err == nil && status == http.StatusConflict && body.Code == "no_seat_left":
		return verdict{said: "refused: no seat left"}
	case err == nil && status == http.StatusConflict && body.Code == "license_expired":
		return verdict{said: "refused: expired"}
	}
	file := getenv("LATCHKEY_LAST_KNOWN", "last-known")
	// The version of the keys that was seen last. Keys that the vendor has retired have a lower one.
	line, _ := os.ReadFile(file)
	seen, _ := strconv.Atoi(string(line))
	checked, err := check(body.Data.documents, key, nonce, seen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "not proven:", err)
		return verdict{said: "undetermined"}
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(checked.keysVersion)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return checked
}

// countUse sends the same idempotency key with all retries, so that the use counts once.
func (a agent) countUse(key string) string {
	idempotencyKey := newKey()
	form := url.Values{"license_key": {key}, "product_key": {product}}.Encode()
	wait := 100 * time.Millisecond
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		request, err := http.NewRequest(http.MethodPut, a.base+"/api/v2/license/usage", strings.NewReader(form))
		if err != nil {
			return err.Error()
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Idempotency-Key", idempotencyKey)
		status, body, err := a.call(request)
		if err == nil && status == http.StatusOK && body.Data.Uses != nil {
			return fmt.Sprint(*body.Data.Uses)
		}
		if err == nil && status != http.StatusOK && status < 500 && status != 408 && status != 409 && status != 429 {
			return fmt.Sprintf("refused (%s)", body.Code)
		}
		time.Sleep(wait)
		wait = min(2*wait, 2*time.Second)
	}
	return "later, under " + idempotencyKey
}

// remembered gives the final verdict: a missing answer is not a "no", and only "disabled" revokes at once.
func remembered(verdict string, until time.Time) string {
	file := getenv("LATCHKEY_LAST_KNOWN", "last-known")
	switch verdict {
	case "valid", "refused: disabled":
		line := until.Format(time.RFC3339) + " " + verdict
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "undetermined":
		line, _ := os.ReadFile(file)
		date, last, _ := strings.Cut(string(line), " ")
		until, err := time.Parse(time.RFC3339, date)
		if last == "refused: disabled" {
			return last
		}
		if last == "valid" && err == nil && !time.Now().After(until) {
			return "valid (last known)"
		}
	}
	return verdict
}

func newKey() string {
	bytes := make([]byte, 16)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", bytes)
}

func getenv(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: license-check LICENSE-KEY")
		os.Exit(2)
	}
	agent, key := newAgent(), os.Args[1]
	var result verdict
	if len(roots) > 0 {
		result = agent.leased(key)
	} else {
		result.said = remembered(agent.verify(key))
	}
	fmt.Println(result.said)
	if len(result.entitlements) > 0 {
		fmt.Println("entitlements:", strings.Join(result.entitlements, " "))
	}
	switch {
	case result.said == "valid":
		fmt.Println("uses:", agent.countUse(key))
	case strings.HasPrefix(result.said, "refused"):
		os.Exit(1)
	case result.said == "undetermined":
		os.Exit(2)
	}
}
