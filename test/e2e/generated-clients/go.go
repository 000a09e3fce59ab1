package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"example.com/check/latchkey"
)

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("product-secret-key", os.Getenv("SECRET"))
		return nil
	}
	client, err := latchkey.NewClientWithResponses(os.Getenv("ADDRESS"), latchkey.WithRequestEditorFn(authorize))
	check(err)
	known, err := client.VerifyLicenseWithResponse(ctx, &latchkey.VerifyLicenseParams{LicenseKey: "KEY-1"})
	check(err)
	key := "go"
	used, err := client.RecordUseWithResponse(
		ctx,
		&latchkey.RecordUseParams{IdempotencyKey: &key},
		latchkey.RecordUseJSONRequestBody{LicenseKey: "KEY-1"},
	)
	check(err)
	unknown, err := client.VerifyLicenseWithResponse(ctx, &latchkey.VerifyLicenseParams{LicenseKey: "NONE"})
	check(err)
	check(json.NewEncoder(os.Stdout).Encode([]any{
		known.JSON200.Data.Enabled,
		used.JSON200.Data.Uses,
		unknown.ApplicationproblemJSON404.Code,
	}))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
