import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import type { LeaseAct } from '../../../src/features/leases/domain/lease.ts';
import type { Started } from '../process.ts';
import { processorTime } from '../process.ts';
import { licenseKeyOf, productKey } from '../sample.ts';
import { Connection } from './connection.ts';
import type { Measured } from './load.ts';

/** The issuer of the measured leases. */
export const issuer = 'https://licenses.example.com';

type Device = { readonly jwk: object; readonly privateKey: KeyObject; readonly licenseKey: string };

/** The devices of customers, each with its own license key and address. They number their requests. */
export class Devices {
  readonly #devices: readonly Device[];
  #seq = 0;

  constructor(count: number) {
    this.#devices = Array.from({ length: count }, (_, number) => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const { kty, crv, x, y } = publicKey.export({ format: 'jwk' });
      return { privateKey, jwk: { kty, crv, x, y }, licenseKey: licenseKeyOf(number) };
    });
  }

  /** Signs the next request of each device. */
  sign(act: LeaseAct, { headers = '' } = {}): string[] {
    this.#seq += 1;
    return this.#devices.map((device, number) => {
      const document = signRequest(device, act, this.#seq);
      const address = `11.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
      return `POST /lease/v1 HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: ${address}\r\ncontent-type: application/jwt\r\n${headers}content-length: ${document.length}\r\n\r\n${document}`;
    });
  }
}

function signRequest({ jwk, privateKey, licenseKey }: Device, act: LeaseAct, seq: number): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const jti = createHash('sha256').update(`${licenseKey} ${seq}`).digest('base64url').slice(0, 21);
  const claims = {
    aud: issuer,
    jti: `${jti}A`,
    act,
    product_key: productKey,
    license_key: licenseKey,
    seq,
    uses: { recorded: 0, returned: 0 },
  };
  const signed = `${encode({ alg: 'ES256', typ: 'latchkey-request+jwt', jwk })}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/** Sends each request once over several connections. Throws if one is not answered with 200. */
export async function sendAll(
  { pid }: Pick<Started, 'pid'>,
  port: number,
  requests: readonly string[],
  connections = 64,
): Promise<Measured> {
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open({ port })));
  const latencies: number[] = [];
  let sent = 0;
  const before = processorTime(pid);
  const start = performance.now();
  await Promise.all(
    open.map(async (connection) => {
      for (let request = requests[sent++]; request !== undefined; request = requests[sent++]) {
        const sentAt = performance.now();
        const status = await answerOf(connection, request);
        if (status !== 200) throw new Error(`a request for a lease was answered with ${status}`);
        latencies.push(performance.now() - sentAt);
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const after = processorTime(pid);
  for (const connection of open) connection.close();
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  const used = before === null || after === null ? null : after.used - before.used;
  const waited = before === null || after === null ? 0 : after.waited - before.waited;
  return {
    requests: requests.length,
    failures: 0,
    seconds,
    p50: at(0.5),
    p99: at(0.99),
    max: at(1),
    connections,
    perSecond: requests.length / seconds,
    processorMicros: used === null ? null : (used * 1000) / requests.length,
    busy: used === null ? null : (used + waited) / 1000 / seconds,
  };
}

async function answerOf(connection: Connection, request: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  connection.onResponse = resolve;
  connection.onBroken = () => reject(new Error('the server closed a connection'));
  connection.send(request);
  return await promise;
}

/** Sends each request over a connection of its own, which stays open. Throws if one is answered. */
export async function openWaits(port: number, requests: readonly string[]): Promise<Connection[]> {
  const open: Connection[] = [];
  for (const request of requests) {
    const connection = await Connection.open({ port });
    connection.onResponse = (status) => {
      throw new Error(`a wait was answered with ${status}`);
    };
    connection.send(request);
    open.push(connection);
  }
  return open;
}
