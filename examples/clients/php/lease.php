<?php
// Checks the lease of a license key with the public root keys of the vendor.

declare(strict_types=1);

use phpseclib3\Crypt\PublicKeyLoader;
use phpseclib3\Math\BigInteger;

// Composer's loader, or the one of Debian's php-phpseclib3.
require_once is_file(__DIR__ . '/vendor/autoload.php') ? __DIR__ . '/vendor/autoload.php' : 'phpseclib3/autoload.php';

// What `latchkey lease setup` prints. A program that reads these from a file can be given others.
const ISSUER = 'https://licenses.example.com';
const PRODUCT = 'RGsF';
const MIN_KEYS_VERSION = 1;
const ROOTS = []; // x and y of each; while there are none, the program asks an agent, and believes what answers on its port
const GENERATED = '/^[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}$/iD';

/** The answer proves nothing: this is not a "no". */
final class NotProven extends RuntimeException
{
}

/** Gives the verdict of an answer, the version of its keys, and what the license unlocks. */
function checkLease(array $answer, string $licenseKey, string $nonce, int $seenVersion): array
{
    if ($nonce === '') {
        throw new InvalidArgumentException('this program must pass a nonce');
    }
    $roots = array_map(fn (array $root) => ['kty' => 'EC', 'crv' => 'P-256', 'x' => $root[0], 'y' => $root[1]], ROOTS);
    $named = array_column(array_map(fn (array $jwk) => [thumbprint($jwk), ['jwk' => $jwk]], $roots), 1, 0);
    [$statement] = openDocument($answer['keys'] ?? null, 'latchkey-keys+jwt', fn (array $header) => $named[$header['kid'] ?? ''] ?? null);
    ensure(($statement['iss'] ?? null) === ISSUER, 'the key statement is of another issuer');
    $version = $statement['version'] ?? null;
    ensure(is_int($version) && $version >= max(MIN_KEYS_VERSION, $seenVersion), 'the key statement is older than one that was seen');
    $signing = array_column(array_map(fn (array $key) => [thumbprint($key['jwk']), $key], $statement['keys']), 1, 0);
    $isLease = isset($answer['lease']);
    $signed = $answer[$isLease ? 'lease' : 'notice'] ?? null;
    $typ = $isLease ? 'latchkey-lease+jwt' : 'latchkey-notice+jwt';
    [$claims, $key] = openDocument($signed, $typ, fn (array $header) => $signing[$header['kid'] ?? ''] ?? null);
    $until = $claims[$isLease ? 'exp' : 'issued_at'] ?? null;
    ensure(($claims['iss'] ?? null) === ISSUER, 'it is of another issuer');
    ensure(is_int($until) && $until <= $key['not_after'], 'it is valid for longer than its key');
    $licenseKey = trim($licenseKey);
    $licenseKey = preg_match(GENERATED, $licenseKey) ? strtoupper($licenseKey) : $licenseKey;
    $issuedFor = $isLease ? $claims['license']['license_key'] ?? null : $claims['license_key'] ?? null;
    ensure($issuedFor === $licenseKey, 'it is for another license key');
    $state = $claims['state'] ?? null;
    ensure($isLease || in_array($state, ['disabled', 'ended', 'blocked', 'replaced'], true), 'the notice has another state');
    ensure(!$isLease || $claims['aud'] === PRODUCT, 'the lease is for another product');
    ensure(!$isLease || time() < $until, 'the lease has expired');
    ensure(!$isLease || ($claims['license']['enabled'] ?? null) === true, 'the license is not enabled');
    if (($claims['nonce'] ?? null) !== $nonce || isset($answer['proof'])) {
        checkProof($answer['proof'] ?? null, $signed, $claims['cnf']['jkt'] ?? null, $nonce);
    }
    // A license that has ended is disabled, and says when it ended.
    $reason = isset($claims['expired_at']) ? 'expired' : $state;
    return [$isLease ? 'valid' : "refused: $reason", $version, $claims['license']['entitlements'] ?? []];
}

/** The device that the document names has signed the nonce: this is no recorded answer, and none for another device. */
function checkProof(?string $proof, string $document, ?string $device, string $nonce): void
{
    [$claims] = openDocument($proof, 'latchkey-proof+jwt', function (array $header) use ($device) {
        $jwk = $header['jwk'] ?? null;
        return is_array($jwk) && count($jwk) === 4 && thumbprint($jwk) === $device ? ['jwk' => $jwk] : null;
    });
    ensure($claims['aud'] === PRODUCT, 'the proof is for another product');
    ensure($claims['nonce'] === $nonce, 'the proof is for another nonce');
    ensure($claims['lease_hash'] === sha256(substr($document, 0, strrpos($document, '.'))), 'the proof is for another document');
}

/** Gives the claims of a document with exactly the header of its type, and the key that has signed it. */
function openDocument(?string $document, string $typ, Closure $keyOf): array
{
    $parts = explode('.', (string) $document);
    ensure(count($parts) === 3, "there is no $typ");
    [$header, $claims, $signature] = array_map(fn (string $part) => (string) base64_decode(strtr($part, '-_', '+/'), true), $parts);
    [$header, $claims] = [json_decode($header, true), json_decode($claims, true)];
    ensure(is_array($header) && count($header) === 3 && is_array($claims), "the header is not the one of $typ");
    ensure(($header['alg'] ?? null) === 'ES256' && ($header['typ'] ?? null) === $typ, "the header is not the one of $typ");
    $key = $keyOf($header);
    ensure($key !== null, 'the key that has signed is not known');
    ensure(strlen($signature) === 64, 'the signature is not one of ES256');
    [$r, $s] = array_map(fn (string $half) => new BigInteger($half, 256), str_split($signature, 32));
    $public = PublicKeyLoader::loadPublicKey(json_encode(['keys' => [$key['jwk']]]))->withHash('sha256');
    $isSigned = $public->withSignatureFormat('Raw')->verify("$parts[0].$parts[1]", ['r' => $r, 's' => $s]);
    ensure($isSigned, 'the signature is wrong');
    return [$claims, $key];
}

/** The name of a key (RFC 7638). */
function thumbprint(array $jwk): string
{
    return sha256(json_encode(['crv' => $jwk['crv'], 'kty' => $jwk['kty'], 'x' => $jwk['x'], 'y' => $jwk['y']]));
}

function sha256(string $text): string
{
    return rtrim(strtr(base64_encode(hash('sha256', $text, true)), '+/', '-_'), '=');
}

function ensure(bool $isTrue, string $otherwise): void
{
    if (!$isTrue) {
        throw new NotProven($otherwise);
    }
}
