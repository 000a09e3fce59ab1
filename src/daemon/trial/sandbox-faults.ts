import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { systemRandom } from '../system/random.ts';

/** How the sandbox misbehaves on purpose; shares are from 0 to 1. */
export type SandboxFaults = {
  latencyMs: number;
  errorRate: number;
  lostReplies: number;
  /** The same seed makes the same requests fail; null: other ones each time. */
  seed: string | null;
};

/** Makes every call of the specification slow, refused or unanswered as often as `faults` wants it by then. */
export function misbehave(server: FastifyInstance, faults: SandboxFaults): void {
  const draw = drawsFrom(faults.seed);
  server.addHook('onRequest', async (request, reply) => {
    if (!isOfSpecification(request)) return;
    if (faults.latencyMs > 0) await sleep(faults.latencyMs, undefined, { ref: false });
    if (draw() < faults.errorRate) await reply.code(503).send({ error: 'a bad day, on purpose' });
  });
  server.addHook('onSend', async (request) => {
    // The work is done; only its answer never arrives.
    if (isOfSpecification(request) && draw() < faults.lostReplies) request.raw.socket.destroy();
  });
}

/** By the route and not by the path, which may be written in other ways. */
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
