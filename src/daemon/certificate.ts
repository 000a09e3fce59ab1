import type { X509Certificate } from 'node:crypto';
import { readNamedFile } from '../config/file/named-file.ts';
import {
  readTlsFiles,
  type TlsFilesResult,
  type TlsIdentity,
  type TlsSettings,
} from '../config/file/certificates.ts';
import { certificateEndsSoonMs } from '../wire/findings.ts';
import { formatDatetime } from '../domain/time.ts';
import { changeCertificate, ListenError } from '../http/listen.ts';
import type { Listener } from '../http/server.ts';
import type { Log } from '../service/ports.ts';

/** The certificate of the TCP listeners, as read from its files at the start or the last reload. */
export class Certificate {
  #identity: TlsIdentity;
  readonly #log: Log;

  /** Throws `ListenError` when the files cannot be used. */
  constructor(settings: TlsSettings, log: Log) {
    const read = readFiles(settings);
    if (!read.ok) throw new ListenError('refused', `listen.tls.${read.key}: ${read.text}`);
    this.#identity = read.identity;
    this.#log = log;
    this.#warnOfEnd();
  }

  get identity(): TlsIdentity {
    return this.#identity;
  }

  /** Epoch ms. */
  get notAfter(): number {
    return endOf(this.#identity.leaf);
  }

  /** Reads the files again. Returns whether the certificate changed. If the files cannot be used, it stays. */
  renew(settings: TlsSettings, servers: readonly Listener[]): boolean {
    const read = readFiles(settings);
    if (!read.ok) {
      const error = `listen.tls.${read.key}: ${read.text}`;
      this.#log.error({ error }, 'the new certificate cannot be used: keeping the previous certificate');
      return false;
    }
    if (read.identity.chain === this.#identity.chain) return false;
    for (const server of servers) changeCertificate(server, read.identity);
    this.#identity = read.identity;
    this.#log.info(this.#end(), 'new certificate loaded');
    this.#warnOfEnd();
    return true;
  }

  #warnOfEnd(): void {
    const leftMs = this.notAfter - Date.now();
    if (leftMs <= 0) this.#log.error(this.#end(), 'the certificate has expired: clients refuse it');
    else if (leftMs < certificateEndsSoonMs) this.#log.warn(this.#end(), 'the certificate expires soon');
  }

  #end(): Record<string, unknown> {
    return { not_after: formatDatetime(this.notAfter) };
  }
}

/** Reads the files of `listen.tls` from the disk. */
export function readFiles(settings: TlsSettings): TlsFilesResult {
  return readTlsFiles(settings, readNamedFile);
}

/** When a certificate expires, in epoch ms. */
export function endOf({ validToDate }: X509Certificate): number {
  return validToDate.getTime();
}
