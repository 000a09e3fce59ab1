<?php
// Checks a license key when it starts, and counts a use: php license_check.php LICENSE-KEY

declare(strict_types=1);

require __DIR__ . '/lease.php';

const TIMEOUT_S = 5;
const DEADLINE_S = 10;
const GRACE_S = 14 * 24 * 3600;

/** Sends one request. Null: there is no readable answer. */
function call(string $method, string $path, ?string $form = null, array $headers = []): ?array
{
    $base = getenv('LATCHKEY_URL') ?: 'http://127.0.0.1:8787';
    $curl = curl_init();
    if (str_starts_with($base, 'unix:')) {
        curl_setopt($curl, CURLOPT_UNIX_SOCKET_PATH, substr($base, 5));
        $base = 'http://localhost';
    }
    curl_setopt_array($curl, [
        CURLOPT_URL => $base . $path,
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_TIMEOUT => TIMEOUT_S,
        // A proxy of the environment would see the secret, and cannot reach the agent of this machine.
        CURLOPT_PROXY => '',
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HTTPHEADER => [
            'product-secret-key: ' . getenv('LATCHKEY_SECRET'),
            'Accept: application/problem+json, application/json',
            ...$headers,
        ],
    ]);
    if ($form !== null) {
        curl_setopt($curl, CURLOPT_POSTFIELDS, $form);
    }
    $body = curl_exec($curl);
    $answer = is_string($body) ? json_decode($body, true) : null;
    return is_array($answer) ? [curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $answer] : null;
}

/** The verdict, and until when a valid verdict counts without the agent. */
function verify(string $key): array
{
    [$status, $answer] = call('GET', '/api/v2/license/verify?' . http_build_query(['license_key' => $key])) ?? [0, []];
    $end = $answer['data']['grace_until'] ?? $answer['data']['expires_at'] ?? null;
    $until = min(time() + GRACE_S, is_string($end) ? (int) strtotime($end) : PHP_INT_MAX);
    return [match (true) {
        $status === 200 && ($answer['data']['enabled'] ?? null) === true => 'valid',
        $status === 200 && ($answer['data']['enabled'] ?? null) === false => 'refused: disabled',
        $status === 404 && ($answer['code'] ?? '') === 'license_not_found' => 'refused: not found',
        default => 'undetermined',
    }, $until];
}

const REFUSALS = [
    '404 license_not_found' => 'refused: not found',
    '409 no_seat_left' => 'refused: no seat left',
    '409 license_expired' => 'refused: expired',
];

/** What the vendor has signed for this device: another program on the port cannot say it. And what that unlocks. */
function leased(string $key): array
{
    $nonce = bin2hex(random_bytes(16));
    $query = http_build_query(['license_key' => $key, 'product_key' => PRODUCT, 'nonce' => $nonce]);
    [$status, $answer] = call('GET', "/agent/v1/lease?$query") ?? [0, []];
    $code = $answer['code'] ?? null;
    if (is_string($code) && isset(REFUSALS["$status $code"])) {
        return [REFUSALS["$status $code"], []];
    }
    $file = getenv('LATCHKEY_LAST_KNOWN') ?: 'last-known';
    try {
        // The version of the keys that was seen last. Keys that the vendor has retired have a lower one.
        $seenVersion = (int) @file_get_contents($file);
        [$verdict, $version, $entitlements] = checkLease($answer['data'] ?? [], $key, $nonce, $seenVersion);
        @file_put_contents($file, (string) $version);
        return [$verdict, $entitlements];
    } catch (Throwable $reason) {
        fwrite(STDERR, "not proven: {$reason->getMessage()}\n");
        return ['undetermined', []];
    }
}

/** All retries send the same idempotency key, so that the use counts once. */
function countUse(string $key): string
{
    $idempotencyKey = bin2hex(random_bytes(16));
    $end = microtime(true) + DEADLINE_S;
    for ($waitMs = 100; microtime(true) < $end; $waitMs = min(2 * $waitMs, 2000)) {
        $form = http_build_query(['license_key' => $key, 'product_key' => PRODUCT]);
        $answered = call('PUT', '/api/v2/license/usage', $form, ["Idempotency-Key: $idempotencyKey"]);
        [$status, $answer] = $answered ?? [0, []];
        if ($status === 200 && isset($answer['data']['uses'])) {
            return (string) $answer['data']['uses'];
        }
        if ($status > 0 && $status !== 200 && $status < 500 && !in_array($status, [408, 409, 429], true)) {
            return 'refused (' . ($answer['code'] ?? $status) . ')';
        }
        usleep($waitMs * 1000);
    }
    return "later, under $idempotencyKey";
}

/** The final verdict: a missing answer is not a "no", and only "disabled" revokes at once. */
function remembered(string $verdict, int $until): string
{
    $file = getenv('LATCHKEY_LAST_KNOWN') ?: 'last-known';
    if ($verdict === 'valid' || $verdict === 'refused: disabled') {
        // No warning: a file that cannot be written must not change the verdict.
        @file_put_contents($file, $until . ' ' . $verdict);
    }
    if ($verdict !== 'undetermined' || !is_file($file)) {
        return $verdict;
    }
    [$until, $last] = explode(' ', (string) @file_get_contents($file), 2) + ['0', ''];
    if ($last === 'refused: disabled') {
        return $last;
    }
    return $last === 'valid' && time() <= (int) $until ? 'valid (last known)' : $verdict;
}

if ($argc !== 2) {
    fwrite(STDERR, "usage: license_check.php LICENSE-KEY\n");
    exit(2);
}
$key = $argv[1];
[$verdict, $entitlements] = ROOTS === [] ? [remembered(...verify($key)), []] : leased($key);
echo $verdict, PHP_EOL;
if ($entitlements !== []) {
    echo 'entitlements: ', implode(' ', $entitlements), PHP_EOL;
}
if ($verdict === 'valid') {
    echo 'uses: ', countUse($key), PHP_EOL;
}
exit(str_starts_with($verdict, 'valid') ? 0 : (str_starts_with($verdict, 'refused') ? 1 : 2));
