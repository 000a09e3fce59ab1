import type tls from 'node:tls';
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { createRequire } from 'node:module';
import { formatReason } from '../errors.ts';
import type { Configuration } from '../core-sections.ts';

/** The certificates of a PEM file, without the rest of the file; or why the file cannot be used. */
type CertificatesResult =
  | {
      readonly ok: true;
      readonly pem: string;
      readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
    }
  | { readonly ok: false; readonly text: string };

type Block = { readonly label: string; readonly text: string };

const certificateLabels = new Set(['CERTIFICATE', 'X509 CERTIFICATE', 'TRUSTED CERTIFICATE']);
/** The first two bytes of a certificate in DER, decoded as UTF-8: the second is no valid character. */
const derStart = '0\u{FFFD}';

/**
 * Reads a file of certificates (PEM). Every certificate in the file must be readable, because OpenSSL ignores a broken
 * certificate and all that follow.
 *
 * `otherLabels`: the labels of other PEM blocks that the file may contain.
 */
export function readCertificates(
  path: string,
  readFile: (path: string) => string,
  otherLabels: RegExp | null = null,
): CertificatesResult {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    return unusable(`cannot read ${path}: ${formatReason(error)}`);
  }
  const blocks = blocksIn(text).filter(({ label }) => otherLabels?.test(label) !== true);
  const other = blocks.find(({ label }) => !certificateLabels.has(label));
  if (other?.label.endsWith('PRIVATE KEY') === true) {
    return unusable(`${path} contains a private key: it must contain certificates only`);
  }
  if (other !== undefined) return unusable(`${path} contains ${other.label}: only CERTIFICATE is allowed`);
  const certificates: X509Certificate[] = [];
  for (const block of blocks) {
    try {
      certificates.push(new X509Certificate(block.text));
    } catch {
      const which = `certificate ${certificates.length + 1} of ${blocks.length}`;
      return unusable(`${path} is damaged: ${which} cannot be read`);
    }
  }
  const [first, ...more] = certificates;
  if (first !== undefined) {
    const pem = blocks.map((block) => block.text).join('');
    return { ok: true, pem, certificates: [first, ...more] };
  }
  return unusable(
    text.startsWith(derStart)
      ? `${path} does not contain a certificate (PEM), but binary data (DER): convert it with openssl x509 -inform der`
      : `${path} does not contain a certificate (PEM)`,
  );
}

function unusable(text: string): CertificatesResult {
  return { ok: false, text };
}

/** The PEM blocks of a text; the last block may lack its end. */
function blocksIn(text: string): Block[] {
  const blocks: { label: string; text: string }[] = [];
  let isInside = false;
  // Windows editors put a byte order mark in front.
  for (const line of text.replace(/^\u{FEFF}/u, '').split(/\r\n|\r|\n/)) {
    const label = /^-----BEGIN ([^-]+)-----\s*$/.exec(line)?.[1];
    if (label !== undefined) {
      blocks.push({ label, text: '' });
      isInside = true;
    }
    const block = blocks.at(-1);
    if (!isInside || block === undefined) continue;
    block.text += `${line}\n`;
    if (line.startsWith('-----END ')) isInside = false;
  }
  return blocks;
}

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
  if (!chain.ok) return unusableFile('cert_file', chain.text);
  const [leaf] = chain.certificates;
  const key = attempt(() => readFile(keyFile).replace(/^\u{FEFF}/u, ''));
  if (!key.ok) return unusableFile('key_file', `cannot read ${keyFile}: ${formatReason(key.error)}`);
  const privateKey = attempt(() => createPrivateKey(key.value));
  if (!privateKey.ok)
    return unusableFile('key_file', `${keyFile} does not contain a private key (PEM) without a passphrase`);
  if (!leaf.checkPrivateKey(privateKey.value)) {
    return unusableFile('key_file', `${keyFile} is not the key of the certificate in ${certFile}`);
  }
  // Loaded on first use: loading it would slow the start of every command by 10 ms.
  const { createSecureContext } = createRequire(import.meta.url)('node:tls') as typeof tls;
  // OpenSSL refuses a key that is too weak.
  const usable = attempt(() => createSecureContext({ cert: chain.pem, key: key.value }));
  if (!usable.ok)
    return unusableFile('cert_file', `${certFile} cannot be used: ${formatReason(usable.error)}`);
  return { ok: true, identity: { chain: chain.pem, key: key.value, leaf } };
}

function unusableFile(key: 'cert_file' | 'key_file', text: string): TlsFilesResult {
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
