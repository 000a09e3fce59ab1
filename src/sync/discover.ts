import { protocolOf, mayDiscover } from '../service/outbox/protocol.ts';
import type { Clock, Log, PushLimits, SyncUpstream } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { Writer } from '../service/writer.ts';
import { persist, type Wake } from './waiting.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';

/** How often an upstream that names itself as Latchkey is asked for `/sync/v1` at least, in ms: at first more often. */
const longestRestMs = 60_000;
/** How long to wait for the first response that names the upstream, or until the plain protocol has settled all, in ms. */
const shortRestMs = 1_000;

type DiscoverParts = {
  reader: Reader;
  writer: Writer;
  syncUpstream: SyncUpstream;
  clock: Clock;
  log: Log;
  limiter: UpstreamLimiter;
  settings: () => { productIds: readonly string[] };
  wake: Wake;
  /** Called when the upstream was chosen, and with its limits. */
  onFound: (limits: PushLimits) => void;
  lifetime: AbortSignal;
};

/** Chooses `/sync/v1` for an upstream that speaks it. Nothing here gives it up again. */
export async function discover(parts: DiscoverParts, signal: AbortSignal): Promise<void> {
  const { reader, wake } = parts;
  let isFound = false;
  let restMs = shortRestMs;
  while (!signal.aborted) {
    if (isFound && protocolOf(reader) === 'latchkey') {
      // A person may choose the plain protocol, and then let the agent choose again.
      await wake.wait(longestRestMs, signal);
      continue;
    }
    const state = mayDiscover(reader) ? await discoverOnce(parts, signal) : 'unnamed';
    isFound = state === 'found';
    restMs = state === 'none' ? Math.min(restMs * 2, longestRestMs) : shortRestMs;
    if (!isFound) await wake.wait(restMs, signal);
  }
}

async function discoverOnce(
  { writer, syncUpstream, clock, log, limiter, settings, onFound, lifetime }: DiscoverParts,
  signal: AbortSignal,
): Promise<'none' | 'settling' | 'found'> {
  const productId = [...settings().productIds, null].find((id) => limiter.isAccepted(id));
  if (productId === undefined) return 'none';
  const admission = await limiter.admit('refresh', signal);
  if (!admission.admitted) return 'none';
  const sentAt = clock.monotonic();
  const outcome = await syncUpstream.info(productId, lifetime);
  // An upstream without `/sync/v1` is not ill.
  if (outcome.outcome !== 'applied') return 'none';
  limiter.observe(outcome, { owner: productId, subject: 'sync', sentAt });
  const chosen = await persist(clock, lifetime, () => writer.write('startPushing', {}));
  if (!chosen.ok || chosen.value.protocol === 'plain') return 'settling';
  log.info({ instance: outcome.value.instance }, 'the upstream is Latchkey: changes are pushed to /sync/v1');
  onFound(outcome.value.limits);
  return 'found';
}
