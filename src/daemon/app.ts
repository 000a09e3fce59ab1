import { promises as files } from 'node:fs';
import { version } from '../config/version.ts';
import { defaultAccountId } from '../domain/access/principal.ts';
import type { App } from '../http/app.ts';
import { dialects } from '../http/dialects/all.ts';
import { rateLimiters } from '../http/entry/admission.ts';
import type { ExportOrder, ExportPage } from '../wire/bulk/export.ts';
import type { CredentialCache } from '../service/access/credential.ts';
import type { Log } from '../service/ports.ts';
import type { AuthorityReader } from '../service/tables.ts';
import { explainOperation } from '../service/outbox/decision.ts';
import type { ConnectionCounts } from './gauges.ts';
import { logOf } from './log/derived.ts';
import type { Metrics } from './metrics.ts';
import type { Role, RoleParts } from './role/role.ts';
import { replaceSecretFile } from './system/secret-files.ts';
import { sha256 } from './system/random.ts';
import type { LocalStore, StoreWriter } from './store/opened-store.ts';
import { done } from '../domain/problem/problem.ts';
import type { CacheableResponse, Licensing } from '../service/answers.ts';

/** The parts of a running process that the routes need. */
type AppParts = Pick<RoleParts, 'instance' | 'current' | 'clock' | 'log'> &
  Pick<App, 'changes' | 'cachesResponses' | 'backup' | 'status' | 'readiness' | 'liveness'> & {
    reader: AuthorityReader;
    local: LocalStore | null;
    writer: StoreWriter;
    metrics: Metrics;
    credentialCache: CredentialCache;
    connections: (() => ConnectionCounts) | null;
    role: Role;
  };

/** Builds the dependencies of the routes. */
export function appOf(parts: AppParts): App {
  const { instance, current, reader, local, writer, clock, log, metrics, changes, cachesResponses } = parts;
  const { licensing, couponing, checkout, credentials, productName, sync, upstream } = parts.role;
  const { role } = current.configuration;
  return {
    role,
    version,
    instance,
    dialect: dialects[current.configuration.listen.dialect],
    licensing: countedLicensing(licensing, metrics),
    couponing,
    checkout,
    changes,
    cachesResponses,
    credentials: parts.credentialCache.cached(credentials),
    rates: rateLimiters(
      () => current.configuration.limits,
      () => clock.elapsed(),
    ),
    products: role === 'agent' ? current.products : null,
    productName,
    reader,
    ...longReadsOf(parts),
    explain: (operation) => {
      if (local === null) throw new Error('an authority has no operations');
      const blocker = upstream?.blocker(operation.productKey) ?? null;
      return explainOperation(local.reader, operation, { blocker, elapsed: clock.elapsed() });
    },
    writer,
    sync,
    backup: (signal) => parts.backup(signal),
    digest: sha256,
    log: logOf(log, 'http'),
    inFlight: new Set(),
    now: () => clock.now(),
    verifiedNow: () => clock.verified(),
    historySince: () => clock.verified() - current.configuration.history.keepMs,
    keepApiKey: (accountId, apiKey) => {
      if (accountId === defaultAccountId)
        keepApiKey(current.configuration.stateDir, apiKey, logOf(log, 'daemon'));
    },
    status: () => parts.status(),
    readiness: () => parts.readiness(),
    liveness: () => parts.liveness(),
    metrics: {
      isOpen: () => current.configuration.metrics.open,
      expose: async () =>
        await metrics.expose({
          status: await parts.status(),
          freeBytes: await freeBytesIn(current.configuration.stateDir),
          productKeys: current.products.configured.map(({ productKey }) => productKey),
          database: parts.connections?.() ?? null,
        }),
      begin: () => metrics.begin(),
      countResponse: (...response) => metrics.countResponse(...response),
      countUnrouted: (status) => metrics.countUnrouted(status),
    },
  };
}

/** Loads what writes CSV only when something is exported. */
async function exportFrom(reader: AuthorityReader, order: ExportOrder): Promise<ExportPage> {
  const { exportPage } = await import('../wire/bulk/export.ts');
  return await exportPage(reader, order);
}

/** Reads that take longer the more is stored: in their own threads, or in the database. */
function longReadsOf({ reader, local, current }: AppParts): Pick<App, 'lists' | 'exportPage' | 'operations'> {
  if (local === null)
    return { lists: reader, exportPage: (order) => exportFrom(reader, order), operations: null };
  const { lists } = local;
  const isAgent = current.configuration.role === 'agent';
  const operations = isAgent ? { ...local.reader.operations, ...lists.operations } : null;
  return { lists, exportPage: (order) => local.exportPage(order), operations };
}

/** Only logs an error: the key was rolled already, and the caller must get the new key. */
function keepApiKey(stateDir: string, apiKey: string, log: Log): void {
  try {
    replaceSecretFile(stateDir, 'apiKey', apiKey);
  } catch (error) {
    const hint = 'write the new key into api.key yourself, or make api.key writable and roll the key again';
    log.error({ err: error, hint }, 'the API key was rolled, but api.key still has the previous key');
  }
}

/** Null if the system does not say. */
async function freeBytesIn(directory: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await files.statfs(directory);
    return bavail * bsize;
  } catch {
    return null;
  }
}

type Counts = Pick<Metrics, 'countVerdict' | 'countUse'>;

/** The same licensing. It counts every verify and every use that succeeds, also verifies that a cache answers. */
function countedLicensing(licensing: Licensing, counts: Counts): Licensing {
  return {
    change: async (request, signal) => {
      const result = await licensing.change(request, signal);
      if (result.ok && request.trigger === 'usage') counts.countUse();
      return result;
    },
    history: (...asked) => licensing.history(...asked),
    verify: async (...asked) => {
      const result = await licensing.verify(...asked);
      if (!result.ok) return result;
      counts.countVerdict(result.value);
      const { cacheable } = result.value;
      return cacheable === undefined ? result : done(countingCached({ ...result.value, cacheable }, counts));
    },
    // Its caller serves the answer as if it came from the cache.
    verifyNow: (...asked) => {
      const answer = licensing.verifyNow?.(...asked) ?? null;
      return answer && countingCached(answer, counts);
    },
  };
}

function countingCached(answer: CacheableResponse, counts: Counts): CacheableResponse {
  const { cacheable } = answer;
  const onServed = (): void => {
    counts.countVerdict(answer);
    cacheable.onServed();
  };
  return { ...answer, cacheable: { ...cacheable, onServed } };
}
