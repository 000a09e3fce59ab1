-- Checks the lease of a license key with the public root keys of the vendor.
local digest = require("openssl.digest")
local json = require("cjson.safe")
local mime = require("mime")
local pkey = require("openssl.pkey")

local lease = {
  -- What `latchkey lease setup` prints. A program that reads these from a file can be given others.
  issuer = "https://licenses.example.com",
  product = "RGsF",
  min_keys_version = 1,
  roots = {}, -- x and y of each; while there are none, the program asks an agent, and believes what answers on its port
}

local states = { disabled = true, ended = true, blocked = true, replaced = true }

-- An error with a text proves nothing: this is not a "no".
local function ensure(is_true, otherwise)
  if not is_true then error(otherwise, 0) end
  return is_true
end

local function encode(bytes)
  return (mime.b64(bytes):gsub("[+/=]", { ["+"] = "-", ["/"] = "_", ["="] = "" }))
end

local function decode(text)
  local plain = text:gsub("[-_]", { ["-"] = "+", ["_"] = "/" }) .. ("="):rep(-#text % 4)
  local bytes = mime.unb64(plain)
  return ensure(bytes and encode(bytes) == text and bytes, "it is not base64url")
end

local function sha256(text)
  return encode(digest.new("sha256"):final(text))
end

local function member(value, name)
  if type(value) == "table" then return value[name] end
end

local function size(value)
  local count = 0
  for _ in pairs(type(value) == "table" and value or {}) do count = count + 1 end
  return count
end

-- The name of a key (RFC 7638).
local function thumbprint(jwk)
  local x, y = member(jwk, "x"), member(jwk, "y")
  ensure(member(jwk, "kty") == "EC" and member(jwk, "crv") == "P-256", "the key is not one of P-256")
  ensure(type(x) == "string" and type(y) == "string" and #x == 43 and #y == 43, "the key is not one of P-256")
  return sha256(('{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}'):format(x, y))
end

-- What stands before x and y in a public key of P-256 (SubjectPublicKeyInfo).
local spki = decode("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE")

local function public_key(jwk)
  local pem = mime.b64(spki .. decode(jwk.x) .. decode(jwk.y))
  return pkey.new(("-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n"):format(pem:gsub(("."):rep(64), "%0\n")))
end

-- OpenSSL wants the two numbers of a signature as a sequence of integers (DER).
local function der(signature)
  local function integer(bytes)
    bytes = bytes:gsub("^\0+", "")
    if bytes:byte() == nil or bytes:byte() > 127 then bytes = "\0" .. bytes end
    return "\2" .. string.char(#bytes) .. bytes
  end
  ensure(#signature == 64, "the signature is not one of ES256")
  local numbers = integer(signature:sub(1, 32)) .. integer(signature:sub(33))
  return "\48" .. string.char(#numbers) .. numbers
end

-- Gives the claims of a document with exactly the header of its type, and the key that has signed it.
local function open(document, typ, key_of)
  ensure(type(document) == "string", "there is no " .. typ)
  local signed, first, second, third = document:match("^(([^.]+)%.([^.]+))%.([^.]+)$")
  local header = ensure(signed and json.decode(decode(first)), "it is not a signed document")
  local is_exact = size(header) == 3 and header.alg == "ES256" and header.typ == typ
  local key = ensure(is_exact and key_of(header), "the header is not one of " .. typ .. ", or names an unknown key")
  local hash = digest.new("sha256"):update(signed)
  ensure(public_key(key.jwk):verify(der(decode(third)), hash), "the signature is wrong")
  return ensure(json.decode(decode(second)), "it has no claims"), key
end

local function named(keys)
  return function(header)
    for _, key in ipairs(keys) do
      if thumbprint(member(key, "jwk")) == header.kid then return key end
    end
  end
end

-- The device that the document names has signed the nonce: this is no recorded answer, and none for another device.
local function check_proof(proof, document, device, nonce)
  local claims = open(proof, "latchkey-proof+jwt", function(header)
    return size(header.jwk) == 4 and thumbprint(header.jwk) == device and { jwk = header.jwk }
  end)
  ensure(claims.aud == lease.product, "the proof is for another product")
  ensure(claims.nonce == nonce, "the proof is for another nonce")
  ensure(claims.lease_hash == sha256(document:match("^(.*)%.")), "the proof is for another document")
end

-- Gives the verdict of an answer, the version of its keys, and what the license unlocks.
function lease.check(answer, license_key, nonce, seen_version)
  assert(type(license_key) == "string", "license_key must be a text")
  assert(type(nonce) == "string" and nonce ~= "", "nonce must be a text that is not empty")
  assert(math.type(seen_version) == "integer", "seen_version must be a whole number")
  local roots = {}
  for index, root in ipairs(lease.roots) do
    roots[index] = { jwk = { kty = "EC", crv = "P-256", x = root[1], y = root[2] } }
  end
  local statement = open(answer.keys, "latchkey-keys+jwt", named(roots))
  local version = ensure(math.tointeger(statement.version), "the key statement has no version")
  ensure(statement.iss == lease.issuer, "the key statement is of another issuer")
  ensure(version >= math.max(lease.min_keys_version, seen_version), "the key statement is older than one that was seen")
  local is_lease = answer.lease ~= nil
  local document, typ = answer.lease or answer.notice, is_lease and "latchkey-lease+jwt" or "latchkey-notice+jwt"
  local claims, key = open(document, typ, named(statement.keys))
  local finish = math.tointeger(is_lease and claims.exp or claims.issued_at)
  ensure(claims.iss == lease.issuer, "it is of another issuer")
  ensure(type(claims.exp) ~= "string" and finish and finish <= key.not_after, "it is valid for longer than its key")
  license_key = license_key:match("^%s*(.-)%s*$")
  local letters = ("[A-HJ-NP-Za-hj-np-z2-9]"):rep(5)
  if license_key:match("^" .. letters .. ("%-" .. letters):rep(3) .. "$") then license_key = license_key:upper() end
  ensure((is_lease and member(claims.license, "license_key") or claims.license_key) == license_key, "it is for another license key")
  ensure(is_lease or states[claims.state], "the notice has another state")
  ensure(not is_lease or claims.aud == lease.product, "the lease is for another product")
  ensure(not is_lease or os.time() < finish, "the lease has expired")
  ensure(not is_lease or member(claims.license, "enabled") == true, "the license is not enabled")
  if claims.nonce ~= nonce or answer.proof then
    check_proof(answer.proof, document, member(claims.cnf, "jkt"), nonce)
  end
  if is_lease then return "valid", version, member(claims.license, "entitlements") or {} end
  -- A license that has ended is disabled, and says when it ended.
  return "refused: " .. (claims.expired_at and "expired" or claims.state), version, {}
end

return lease
