import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { systemRandom } from '../system/random.ts';

/** How a sandbox misbehaves on purpose. Shares are from 0 to 1. */
export type SandboxFaults = {
  latencyMs: number;
  errorRate: number;
  lostReplies: number;
  /** With the same seed, the same requests fail; null: other requests each time. */
  seed: string | null;
};

export const noFaults: Readonly<SandboxFaults> = { latencyMs: 0, errorRate: 0, lostReplies: 0, seed: null };

/** Delays, refuses or leaves unanswered the calls of the specification, as `faults` says at the time of each call. */
export function misbehave(server: FastifyInstance, faults: SandboxFaults): void {
  const draw = drawsFrom(faults.seed);
  server.addHook('onRequest', async (request, reply) => {
    if (!isOfSpecification(request)) return;
    if (faults.latencyMs > 0) await sleep(faults.latencyMs, undefined, { ref: false });
    if (draw() < faults.errorRate) await reply.code(503).send({ error: 'an error on purpose' });
  });
  server.addHook('onSend', async (request) => {
    // The work is done, but the response never arrives.
    if (isOfSpecification(request) && draw() < faults.lostReplies) request.raw.socket.destroy();
  });
}

/** Looks at the route, because a path can be written in several ways. */
function isOfSpecification({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith('/api/') === true;
}

function drawsFrom(seed: string | null): () => number {
  if (seed === null) return () => systemRandom.draw();
  let drawn = 0;
  return () => {
    drawn += 1;
    return hash('sha256', `${seed} ${drawn}`, 'buffer').readUInt32LE() / 2 ** 32;
  };
}
