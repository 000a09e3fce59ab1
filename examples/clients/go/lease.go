package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// What `latchkey lease setup` prints. A program that reads these from a file can be given others.
const (
	issuer         = "https://licenses.example.com"
	product        = "RGsF"
	minKeysVersion = 1
)

// roots: while there are none, the program asks an agent, and believes what answers on its port.
var roots = []jwk{}

// jwk is a public key. The order of its members is that of RFC 7638.
type jwk struct {
	Crv string `json:"crv"`
	Kty string `json:"kty"`
	X   string `json:"x"`
	Y   string `json:"y"`
}

type signedKey struct {
	Jwk      jwk   `json:"jwk"`
	NotAfter int64 `json:"not_after"`
}

type documents struct {
	Lease  string `json:"lease"`
	Notice string `json:"notice"`
	Keys   string `json:"keys"`
	Proof  string `json:"proof"`
}

type claims struct {
	jwt.RegisteredClaims
	Aud        string      `json:"aud"`
	Version    int         `json:"version"`
	Keys       []signedKey `json:"keys"`
	LicenseKey string      `json:"license_key"`
	State      string      `json:"state"`
	IssuedAt   int64       `json:"issued_at"`
	ExpiredAt  int64       `json:"expired_at"`
	Nonce      string      `json:"nonce"`
	LeaseHash  string      `json:"lease_hash"`
	License    struct {
		LicenseKey   string   `json:"license_key"`
		Enabled      bool     `json:"enabled"`
		Entitlements []string `json:"entitlements"`
	} `json:"license"`
	Cnf struct {
		Jkt string `json:"jkt"`
	} `json:"cnf"`
}

var generated = regexp.MustCompile(`(?i)^[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}$`)
var states = []string{"disabled", "ended", "blocked", "replaced"}

// verdict of an answer: with the version of its keys, and what the license unlocks.
type verdict struct {
	said         string
	keysVersion  int
	entitlements []string
}

// check gives the verdict of an answer. An error proves nothing: it is not a "no".
func check(answer documents, key, nonce string, seenVersion int) (verdict, error) {
	if nonce == "" {
		return verdict{}, errors.New("this program must pass a nonce")
	}
	known := []signedKey{}
	for _, root := range roots {
		known = append(known, signedKey{Jwk: root})
	}
	statement, _, err := open(answer.Keys, "latchkey-keys+jwt", named(known), jwt.WithIssuer(issuer))
	if err != nil {
		return verdict{}, err
	}
	if statement.Version < max(minKeysVersion, seenVersion) {
		return verdict{}, errors.New("the key statement is older than one that was seen")
	}
	signing := named(statement.Keys)
	key = strings.TrimSpace(key)
	if generated.MatchString(key) {
		key = strings.ToUpper(key)
	}
	if answer.Lease == "" {
		notice, by, err := open(answer.Notice, "latchkey-notice+jwt", signing, jwt.WithIssuer(issuer))
		if err == nil && (notice.LicenseKey != key || notice.IssuedAt < 1 || notice.IssuedAt > by.NotAfter || !slices.Contains(states, notice.State)) {
			err = errors.New("the notice is for another license key, has another state, or was issued after the end of its key")
		}
		if err == nil {
			err = checkProof(answer.Proof, answer.Notice, notice.Cnf.Jkt, nonce)
		}
		if err != nil {
			return verdict{}, err
		}
		if notice.ExpiredAt > 0 {
			notice.State = "expired" // a license that has ended is disabled, and says when it ended
		}
		return verdict{"refused: " + notice.State, statement.Version, nil}, nil
	}
	lease, by, err := open(answer.Lease, "latchkey-lease+jwt", signing,
		jwt.WithIssuer(issuer), jwt.WithAudience(product), jwt.WithExpirationRequired())
	if err != nil {
		return verdict{}, err
	}
	if lease.License.LicenseKey != key || !lease.License.Enabled || lease.ExpiresAt.Unix() > by.NotAfter {
		return verdict{}, errors.New("the lease is for another license key, or valid for longer than its key")
	}
	if lease.Nonce != nonce || answer.Proof != "" {
		err = checkProof(answer.Proof, answer.Lease, lease.Cnf.Jkt, nonce)
	}
	return verdict{"valid", statement.Version, lease.License.Entitlements}, err
}

// checkProof: the device that the document names has signed the nonce, so that this is no recorded answer, and none for
// another device.
func checkProof(proof, document, device, nonce string) error {
	signed, _, err := open(proof, "latchkey-proof+jwt", ofDevice(device), jwt.WithAudience(product))
	if err != nil {
		return err
	}
	if signed.Nonce != nonce || signed.LeaseHash != hash(document[:strings.LastIndex(document, ".")]) {
		return errors.New("the proof is for another nonce or another document")
	}
	return nil
}

// open gives the claims of a document with exactly the header of its type, and the key that has signed it.
func open(document, typ string, keyOf finder, options ...jwt.ParserOption) (claims, signedKey, error) {
	var content claims
	var by signedKey
	options = append(options, jwt.WithValidMethods([]string{"ES256"}), jwt.WithStrictDecoding())
	_, err := jwt.ParseWithClaims(document, &content, func(token *jwt.Token) (any, error) {
		found, isKnown := keyOf(token.Header)
		if len(token.Header) != 3 || token.Header["typ"] != typ || !isKnown {
			return nil, fmt.Errorf("the header is not one of %s, or names an unknown key", typ)
		}
		by = found
		return found.Jwk.public()
	}, options...)
	return content, by, err
}

// finder finds the key that a header names.
type finder func(header map[string]any) (signedKey, bool)

func named(keys []signedKey) finder {
	return func(header map[string]any) (signedKey, bool) {
		index := slices.IndexFunc(keys, func(key signedKey) bool { return key.Jwk.thumbprint() == header["kid"] })
		if index < 0 {
			return signedKey{}, false
		}
		return keys[index], true
	}
}

func ofDevice(thumbprint string) finder {
	return func(header map[string]any) (signedKey, bool) {
		members, _ := header["jwk"].(map[string]any)
		text := func(name string) string { value, _ := members[name].(string); return value }
		key := jwk{text("crv"), text("kty"), text("x"), text("y")}
		return signedKey{Jwk: key}, len(members) == 4 && key.thumbprint() == thumbprint
	}
}

// GetAudience: the audience is one text, never a list.
func (c claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Aud}, nil }

func (key jwk) public() (*ecdsa.PublicKey, error) {
	x, err := base64.RawURLEncoding.DecodeString(key.X)
	y, err2 := base64.RawURLEncoding.DecodeString(key.Y)
	return &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}, errors.Join(err, err2)
}

func (key jwk) thumbprint() string {
	members, _ := json.Marshal(key)
	return hash(string(members))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
