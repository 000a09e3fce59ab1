import { X509Certificate } from 'node:crypto';
import { formatReason } from '../errors.ts';

/** The certificates of a PEM file, without the rest of the file; or why the file cannot be used. */
export type CertificatesResult =
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
