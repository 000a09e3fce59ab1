/** A self-signed certificate for `localhost`, valid until 2120. It is only for tests and protects nothing. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBSTCB8KADAgECAgEBMAoGCCqGSM49BAMCMBgxFjAUBgNVBAMMDWxhdGNoa2V5
IHRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBgxFjAUBgNV
BAMMDWxhdGNoa2V5IHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARZsC9F
0Fga+7VFAeplMhBJbgqu5Z05g6ENERd5yTQrmnTtuGbDjKgM01OQrWB8EacRlu6+
3aUOWvbWd2A8eK7VoykwJzAUBgNVHREEDTALgglsb2NhbGhvc3QwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAmJcQ6QTK4p6cgV7aDTw9Gw6J+cVx
NJ6Aw1dOMyxfRDECIDs1r0TRYOEojClS4sYlTLJC+qXh8koXgjJ6GNoFwhZF
-----END CERTIFICATE-----
`;

/** The key of `certificate`. */
export const privateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgc8w9VxrO2m14VBK3
IKjZ6fBDvQbAexgsVdiQBwkCoNGhRANCAARZsC9F0Fga+7VFAeplMhBJbgqu5Z05
g6ENERd5yTQrmnTtuGbDjKgM01OQrWB8EacRlu6+3aUOWvbWd2A8eK7V
-----END PRIVATE KEY-----
`;

/** A private key without a certificate. */
export const anotherPrivateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCpU7/PjycB5dd0Zf
q6Pig8r8sZS1bW5gJW5ENvnCndWhRANCAAQoUybx8Anfgc93VR5f0YkDOS3+QHVT
jnUP2JGWMiWxHX3yKmgFEK+oSpDZyGkjoc0xGM2MAe9Kr7H3X8MiRwPn
-----END PRIVATE KEY-----
`;
