import { setImmediate } from 'node:timers/promises';
import { hostname } from 'node:os';
import { readCertificates } from '../../../config/file/certificates.ts';
import { readNamedFile } from '../../../config/file/named-file.ts';
import type { LeaseSettings } from '../config/leases.ts';
import { readRootKey } from '../config/root-key.ts';
import { version } from '../../../config/version.ts';
import { maxDeviceNameLength } from '../domain/lease.ts';
import { failWith, type Result } from '../../../domain/problem/problem.ts';
import { Holder } from '../holder/holder.ts';
import { DeviceDocuments } from '../holder/device-documents.ts';
import { examineStored, type ExaminedStore } from '../holder/stored-documents.ts';
import { maxExchanges, maxWaits } from '../holder/renewals.ts';
import { licenseCredential, tokenCredentials } from '../../../service/access/credential.ts';
import { heldLicenseService } from '../service/held-license.ts';
import { logKey } from '../../../service/lifecycle/start.ts';
import type { Reader } from '../../../service/tables.ts';
import { type LeaseEndpoint, leaseEndpoint } from '../upstream/lease-endpoint.ts';
import { chooseProxy, type ProxyChoice } from '../../../upstream/proxy.ts';
import { ensureDeviceKey } from './device-key.ts';
import { sha256, systemRandom } from '../../../daemon/system/machine.ts';
import { trustSystemAnd } from '../../../daemon/system/trust.ts';
import type { Role, RoleParts } from '../../../daemon/role/role.ts';
import { heldVerdict, pendingUses } from '../domain/held-lease.ts';
import type { Clock } from '../../../service/ports.ts';
import type { HolderStatus, FreshnessCounts } from '../../../service/status.ts';

/** Requests of callers come on top of those that the loop makes. */
const connectionsOfCallers = 8;

/** Builds a holder: it has leases for this device, and no secret of the vendor. */
export async function holderRole(parts: RoleParts & { reader: Reader }): Promise<Role> {
  const { current, reader, writer, clock, log, lifetime, tokenUses: uses } = parts;
  const { leases } = current.configuration;
  const issuer = issuerOf(leases);
  const device = await ensureDeviceKey(current.configuration);
  const roots = rootKeys(leases);
  const documents = new DeviceDocuments(device, { issuer, roots, random: systemRandom });
  const endpoint = connectToIssuer(leases);
  const productKeys = (): readonly string[] => current.configuration.products.map(({ key }) => key);
  const holder = new Holder({
    reader,
    writer,
    clock,
    log,
    lifetime,
    documents,
    send: (document, options) => endpoint.send(document, options),
    deviceName: () => deviceName(current.configuration.leases),
    fraction: () => systemRandom.fraction(),
    settings: () => ({
      activate: current.configuration.leases.activate,
      productKeys: productKeys(),
      misses: current.configuration.limits.misses,
    }),
  });
  const secret = await logKey(reader);
  return {
    licenseService: heldLicenseService({ reader, writer, clock, leases: holder, productKeys }),
    couponService: { create: notOffered, list: notOffered, get: notOffered },
    checkout: { quote: notOffered, redeem: notOffered, void: notOffered },
    credentials: tokenCredentials({ reader, verifiedNow: () => clock.verified(), uses }),
    productName: (productKey) => current.productName(productKey),
    upstream: null,
    sync: null,
    chain: null,
    agent: null,
    process: {
      app: {
        leaseHolder: holder,
        licenseCredential: (licenseKey) => licenseCredential(sha256(`${secret} ${licenseKey}`).slice(0, 16)),
      },
      status: () => heldStatus({ reader, clock, holder, issuer, device: device.kid }),
      onSleep: () => holder.renewals.retryNow(),
    },
    async bind() {
      const examined = await examineStored(reader, { roots, device: device.kid });
      const hasOtherRoots = examined.statementFault !== null;
      await bind(parts, { issuer, device: device.kid, hasOtherRoots });
      await correct(parts, examined);
      holder.renewals.retryNow();
    },
    async run(signal) {
      await using _ = endpoint;
      // The daemon writes its line `ready` first: the first request loads undici, which takes 30 ms.
      await setImmediate();
      await holder.renewals.run(signal);
    },
  };
}

/** Records the issuer and the device in the store, and logs what follows for the leases. */
async function bind(
  { writer, log }: RoleParts,
  { issuer, device, hasOtherRoots }: { issuer: string; device: string; hasOtherRoots: boolean },
): Promise<void> {
  const bound = await writer.write('bindIssuer', { issuer, device, hasOtherRoots });
  if (!bound.ok) throw new Error(bound.problem.detail);
  const { forgotten } = bound.value;
  if (forgotten === 0) return;
  const what = 'leases.issuer or the key of this device has changed: each license key needs a new lease';
  log.warn({ issuer, leases: forgotten }, what);
}

/** Records what the stored documents prove, and logs what was found. */
async function correct({ writer, log }: RoleParts, examined: ExaminedStore): Promise<void> {
  const { statementFault, corrections } = examined;
  if (statementFault !== null)
    log.warn({ detail: statementFault }, 'the stored key statement of the issuer is not trusted');
  for (const correction of corrections) {
    const corrected = await writer.write('correctHeldLease', correction);
    if (!corrected.ok) throw new Error(corrected.problem.detail);
    if (corrected.unchanged === true) continue;
    const { licenseKey, document } = correction;
    if (document.kind !== 'unproven')
      log.warn({ licenseKey }, 'the stored values of a lease were not those of its signed document');
    else if (statementFault === null)
      log.warn(
        { licenseKey, detail: document.fault },
        'a stored lease is not proven: asking the issuer again',
      );
  }
}

function issuerOf({ issuer }: LeaseSettings): string {
  if (issuer === null) throw new Error('only a holder has leases.issuer');
  return issuer;
}

/** The configuration was checked; a file may have changed since. */
function rootKeys({ roots }: LeaseSettings): ReturnType<typeof readKey>[] {
  return roots.map(readKey);
}

function readKey(path: string) {
  const read = readRootKey(path, readNamedFile);
  if (!read.ok) throw new Error(`leases.roots: ${read.text}`);
  return read.key;
}

/** The connections to the issuer. A request is sent once; the loop decides when to repeat it. */
export function connectToIssuer(leases: LeaseSettings): LeaseEndpoint {
  const { caFile, timeoutMs } = leases;
  const read = caFile === null ? null : readCertificates(caFile, readNamedFile);
  if (read?.ok === false) throw new Error(`leases.ca_file: ${read.text}`);
  return leaseEndpoint({
    baseUrl: issuerOf(leases),
    timeoutMs,
    trust: trustSystemAnd(...(read === null ? [] : [read.pem])),
    proxy: () => proxyToIssuer(leases),
    connectTo: null,
    maxConnections: () => maxExchanges + maxWaits + connectionsOfCallers,
    userAgent: `latchkey/${version}`,
  });
}

export function proxyToIssuer(leases: LeaseSettings): ProxyChoice | null {
  const proxy = leases.proxy?.reveal() ?? null;
  const choice = chooseProxy({ baseUrl: issuerOf(leases), proxy, connectTo: null }, process.env);
  return choice === null || proxy === null ? choice : { ...choice, source: 'leases.proxy' };
}

/** Null: none is sent. The issuer refuses control characters. */
function deviceName({ deviceName: configured }: LeaseSettings): string | null {
  if (configured === false) return null;
  const name = (configured ?? hostname()).toWellFormed().replaceAll(/\p{Cc}/gu, '');
  return name === '' ? null : name.slice(0, maxDeviceNameLength).toWellFormed();
}

function notOffered(): Promise<Result<never>> {
  return Promise.resolve(
    failWith('not_offered_by_holder', 'A holder has leases of license keys, and nothing else of the store.'),
  );
}

type StatusParts = {
  reader: Pick<Reader, 'heldLeases'>;
  clock: Pick<Clock, 'now'>;
  holder: Holder;
  issuer: string;
  /** The thumbprint of the key of this device. */
  device: string;
};

/** The leases of this device, for `/statusz` and the metrics. */
function heldStatus({ reader, clock, holder, issuer, device }: StatusParts): {
  leases: HolderStatus;
  records: FreshnessCounts;
} {
  const now = clock.now();
  const records = { fresh: 0, stale: 0, grace: 0, expired: 0, disabled: 0 };
  let nextEnd: number | null = null;
  let pending = 0;
  for (const held of reader.heldLeases.all()) {
    const found = heldVerdict(held, now);
    pending += pendingUses(held);
    if (found.verdict === 'expired') records.expired += 1;
    if (found.verdict !== 'answer') continue;
    if (held.document?.kind !== 'lease') {
      records.disabled += 1;
      continue;
    }
    records[found.freshness] += 1;
    nextEnd = Math.min(nextEnd ?? Infinity, held.document.expiresAt);
  }
  return { records, leases: { issuer, device, ...holder.renewals.contact(), nextEnd, pendingUses: pending } };
}
