import type { webcrypto } from 'node:crypto';

/** The types of a browser's Web Crypto that @peculiar/x509 names; Node has the same under `webcrypto`. */
declare global {
  type Algorithm = webcrypto.Algorithm;
  type AlgorithmIdentifier = webcrypto.AlgorithmIdentifier;
  type BufferSource = NodeJS.BufferSource;
  type CryptoKeyPair = webcrypto.CryptoKeyPair;
  type EcdsaParams = webcrypto.EcdsaParams;
  type EcKeyGenParams = webcrypto.EcKeyGenParams;
  type EcKeyImportParams = webcrypto.EcKeyImportParams;
  type KeyUsage = webcrypto.KeyUsage;
  type RsaHashedImportParams = webcrypto.RsaHashedImportParams;
}
