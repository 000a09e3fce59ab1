import { expect, test } from 'vitest';
import {
  configurationOf,
  errorsOf,
  folder,
  warningsOf,
  type ConfigInput,
} from '../support/builders/config-builders.ts';
import { anotherPrivateKey, certificate, privateKey } from '../support/network/certificate.ts';

const file = `${folder}/config.yaml`;
const cert = `${folder}/tls/cert.pem`;
const key = `${folder}/tls/key.pem`;
const text = 'listen:\n  tls:\n    cert_file: tls/cert.pem\n    key_file: tls/key.pem\n';

function withFiles(certText: string, keyText: string): ConfigInput {
  return { text, files: { [cert]: certText, [key]: keyText } };
}

test('the paths of a certificate and its key start at the folder of the configuration file', () => {
  const { listen } = configurationOf(withFiles(certificate, privateKey));
  expect(listen.tls).toEqual({ certFile: cert, keyFile: key });
});

test.each([
  [{ text }, `listen.tls.cert_file: cannot read ${cert}: no such file or directory (from ${file} line 3)`],
  [
    { text, files: { [cert]: certificate } },
    `listen.tls.key_file: cannot read ${key}: no such file or directory (from ${file} line 4)`,
  ],
  [
    withFiles('no', privateKey),
    `listen.tls.cert_file: ${cert} does not contain a certificate (PEM) (from ${file} line 3)`,
  ],
  [
    withFiles(certificate, certificate),
    `listen.tls.key_file: ${key} does not contain a private key (PEM) without a passphrase (from ${file} line 4)`,
  ],
  [
    withFiles(certificate, anotherPrivateKey),
    `listen.tls.key_file: ${key} is not the key of the certificate in ${cert} (from ${file} line 4)`,
  ],
  [
    withFiles(`${certificate}-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n`, privateKey),
    expect.stringMatching(
      /^listen\.tls\.cert_file: .*cert\.pem is damaged: certificate 2 of 2 cannot be read/,
    ),
  ],
  [{ text: `listen: { tls: { cert_file: a } }` }, `listen.tls.key_file: is missing (from ${file} line 1)`],
])('files that no TLS server could use are an error (case %#)', (given, error) => {
  expect(errorsOf(given)).toEqual([error]);
});

test('TLS without a TCP listener is an error', () => {
  const given = withFiles(certificate, privateKey);
  expect(errorsOf({ ...given, flags: { listen: { tcp: false } } })).toEqual([
    `listen.tls: needs listen.tcp, which is switched off (from ${file} line 2)`,
  ]);
});

test('a private key that every user can read causes a warning', () => {
  const given = withFiles(certificate, privateKey);
  expect(warningsOf(given)).toEqual([]);
  expect(warningsOf({ ...given, worldReadable: [key, cert] })).toEqual([
    `listen.tls.key_file: ${key} can be read by every user of this machine: chmod 0600 (from ${file} line 4)`,
  ]);
});
