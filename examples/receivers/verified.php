<?php
function verified(string $secret, array $headers, string $body): array {
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    $stamp = $headers['webhook-timestamp'] ?? '';
    if ($key === false || abs(time() - (int) $stamp) > 300) throw new Exception('too old, or no secret');
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "{$headers['webhook-id']}.$stamp.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given)
        if (hash_equals($expected, $given)) return json_decode($body, true);
    throw new Exception('not signed with this secret');
}
