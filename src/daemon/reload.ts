import type { Configuration, UpstreamSettings } from '../config/configuration.ts';

/**
 * What of another configuration a running process can take on; the rest stays as it is until a restart:
 * its role, where it keeps its state and listens, and the way that its connections upward are made.
 */
export function takenOver(running: Configuration, wanted: Configuration): Configuration {
  const { role, stateDir, listen, limits, log, upstream, products } = running;
  const { rate, misses, failedRate } = wanted.limits;
  return {
    ...wanted,
    role,
    stateDir,
    listen,
    limits: { ...limits, rate, misses, failedRate },
    log: { ...wanted.log, format: log.format },
    upstream: takenOverUpstream(upstream, wanted.upstream),
    products: role === wanted.role ? wanted.products : products,
  };
}

function takenOverUpstream(
  running: UpstreamSettings | null,
  wanted: UpstreamSettings | null,
): UpstreamSettings | null {
  if (running === null || wanted === null) return running;
  const { apiKey, probeMs } = wanted;
  return { ...running, apiKey, probeMs };
}
