import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signingDirectoryOf } from '../../../config/configuration.ts';
import { hostOf } from '../../../config/value/address.ts';
import { logOf } from '../../../daemon/log.ts';
import type { ProcessParts } from '../../../daemon/compose.ts';
import type { PersistentClock } from '../../../daemon/system/clock.ts';
import { queueOf } from '../../../domain/outbox/operation.ts';
import { networkOf } from '../../../http/entry/client-address.ts';
import type { Issuer } from '../issuer/issuer.ts';
import { stampOf, statementFile } from '../issuer/statement-file.ts';
import { NamedRateLimiter } from '../../../http/entry/rate-limits.ts';
import { failWith, type Result } from '../../../domain/problem/problem.ts';
import type { LeaseIssuer } from '../service/ports.ts';
import type { LeaseService } from '../service/services.ts';
import type { Log } from '../../../service/ports.ts';
import type { Announcer } from '../../../service/writer.ts';

/** The issuer of an authority or an agent. `count`: counts a request. */
export function leaseIssuerOf(parts: ProcessParts, count: (result: string) => void): LeaseIssuer {
  return lazyLeaseIssuer({
    ...parts,
    directory: signingDirectoryOf(parts.current.configuration),
    leases: () => leaseServiceOf(parts),
    log: logOf(parts.log, 'lease'),
    count,
  });
}

async function leaseServiceOf({
  current,
  reader,
  writer,
  clock,
  local,
  role: { agent, licenseService },
}: ProcessParts): Promise<LeaseService> {
  const { agentLeaseService, authorityLeaseService } = await import('../service/services.ts');
  if (agent === null || local === null) return authorityLeaseService(reader, writer, clock);
  return agentLeaseService({
    reader: local.reader,
    writer,
    clock,
    licenseService,
    fetcher: agent.fetcher,
    productIdOf: (productKey) => current.products.idOf(productKey),
    termsOf: (productId) => current.leaseTermsOf(productId),
    settings: current.agentSettings,
    wake: (licenseKey) => agent.deliveries.wake({ subject: licenseKey, queue: queueOf.usage }),
  });
}

type Parts = {
  /** The signing directory. */
  directory: string;
  leases: () => Promise<LeaseService>;
  clock: PersistentClock;
  changes: Announcer;
  log: Log;
  count: (result: string) => void;
};

/** How many failures and requests for seats an address may send. Whole offices start their machines at the same time. */
const perAddress = { perSecond: 2, burst: 200 };
/** How many of them one license key may have. */
const perLicense = { perSecond: 1, burst: 60 };

/** An issuer that loads its modules at the first request after `lease setup`: most processes have no leases. */
function lazyLeaseIssuer(parts: Parts): LeaseIssuer {
  const statement = new StatementHost(join(parts.directory, statementFile));
  let issuer: Issuer | null = null;
  let loading: Promise<Issuer> | null = null;
  let isStopped = false;
  const load = async (): Promise<Issuer> => {
    issuer = await (loading ??= loadIssuer(parts));
    if (isStopped) issuer.stopWaiting();
    return issuer;
  };
  /** Without an installed key statement there is nothing to load. */
  const use = async <Value>(ask: (loaded: Issuer) => Promise<Result<Value>>): Promise<Result<Value>> =>
    loading === null && statement.host() === null ? notSetUp() : await ask(await load());
  return {
    // No function of its own for each request: thousands of them may wait.
    answer: (...request) => issuer?.answer(...request) ?? use((loaded) => loaded.answer(...request)),
    statement: () => use((loaded) => loaded.statement()),
    sign: (...request) => use((loaded) => loaded.sign(...request)),
    status: async () =>
      loading === null && statement.host() === null ? null : await (await load()).status(),
    host: () => statement.host(),
    stopWaiting() {
      isStopped = true;
      issuer?.stopWaiting();
    },
  };
}

async function loadIssuer({ directory, leases, clock, changes, log, count }: Parts): Promise<Issuer> {
  const [{ Issuer: LoadedIssuer }, { SigningKeys }, { WaitingRequests }, loadedLeaseService] =
    await Promise.all([
      import('../issuer/issuer.ts'),
      import('../issuer/signing-keys.ts'),
      import('../issuer/waiting.ts'),
      leases(),
    ]);
  const monotonic = (): number => clock.monotonic();
  const ofAddress = new NamedRateLimiter(() => perAddress.perSecond, monotonic, perAddress.burst);
  return new LoadedIssuer({
    keys: new SigningKeys(directory, log),
    leases: loadedLeaseService,
    waiting: new WaitingRequests({ clock, changes }),
    now: () => clock.now(),
    isClockSuspect: () => clock.status().suspect,
    limits: {
      perAddress: { take: (address) => ofAddress.take(networkOf(address)) },
      perLicense: new NamedRateLimiter(() => perLicense.perSecond, monotonic, perLicense.burst),
    },
    count,
  });
}

function notSetUp(): Result<never> {
  return failWith('leases_not_set_up', 'Leases are not set up here.');
}

/** The host name of the issuer in an installed key statement, read again when its file has changed. */
class StatementHost {
  readonly #path: string;
  #stamp: string | null = null;
  #host: string | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  host(): string | null {
    const stamp = stampOf(this.#path);
    if (stamp !== this.#stamp) {
      this.#stamp = stamp;
      this.#host = stamp === null ? null : hostIn(this.#path);
    }
    return this.#host;
  }
}

/** Not verified: the host name only decides whether a request is for this server. */
function hostIn(path: string): string | null {
  try {
    const [, payload = ''] = readFileSync(path, 'utf8').split('.');
    const { iss } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { iss: string };
    return hostOf(new URL(iss));
  } catch {
    return null;
  }
}
