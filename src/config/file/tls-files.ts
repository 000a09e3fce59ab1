import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import type tls from 'node:tls';
import type { Configuration } from '../configuration.ts';
import { formatReason } from '../errors.ts';
import { readCertificates } from './certificates.ts';

export type TlsSettings = NonNullable<Configuration['listen']['tls']>;

/** The content of the files of `listen.tls` (PEM); `leaf` is the certificate of the server. */
export type TlsIdentity = { readonly chain: string; readonly key: string; readonly leaf: X509Certificate };

/** One file may contain the certificates and their key, as for HAProxy. */
const keyLabels = /PRIVATE KEY$|PARAMETERS$/;

export type TlsFilesResult =
  | { readonly ok: true; readonly identity: TlsIdentity }
  | { readonly ok: false; readonly key: 'cert_file' | 'key_file'; readonly text: string };

/** Reads the files of `listen.tls` and checks that a server can use them together. */
export function readTlsFiles(
  { certFile, keyFile }: TlsSettings,
  readFile: (path: string) => string,
): TlsFilesResult {
  const chain = readCertificates(certFile, readFile, keyLabels);
  if (!chain.ok) return unusable('cert_file', chain.text);
  const [leaf] = chain.certificates;
  const key = attempt(() => readFile(keyFile).replace(/^\u{FEFF}/u, ''));
  if (!key.ok) return unusable('key_file', `cannot read ${keyFile}: ${formatReason(key.error)}`);
  const privateKey = attempt(() => createPrivateKey(key.value));
  if (!privateKey.ok)
    return unusable('key_file', `${keyFile} does not contain a private key (PEM) without a passphrase`);
  if (!leaf.checkPrivateKey(privateKey.value)) {
    return unusable('key_file', `${keyFile} is not the key of the certificate in ${certFile}`);
  }
  // Loaded on first use: loading it would slow the start of every command by 10 ms.
  const { createSecureContext } = createRequire(import.meta.url)('node:tls') as typeof tls;
  // OpenSSL refuses a key that is too weak.
  const usable = attempt(() => createSecureContext({ cert: chain.pem, key: key.value }));
  if (!usable.ok) return unusable('cert_file', `${certFile} cannot be used: ${formatReason(usable.error)}`);
  return { ok: true, identity: { chain: chain.pem, key: key.value, leaf } };
}

function unusable(key: 'cert_file' | 'key_file', text: string): TlsFilesResult {
  return { ok: false, key, text };
}

type Attempt<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly error: unknown };

function attempt<Value>(make: () => Value): Attempt<Value> {
  try {
    return { ok: true, value: make() };
  } catch (error) {
    return { ok: false, error };
  }
}
