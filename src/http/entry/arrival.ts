import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App, ServerSettings } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import { checkTarget, readQuery } from './gate.ts';
import type { Origins } from './origin.ts';
import { headReader } from './request-headers.ts';

/** Makes the function that takes each request of a listener through the gate. */
export function arrival(
  app: App,
  settings: ServerSettings,
  { names, origins }: { names: ServerSettings['headerAliases']; origins: Origins },
): (request: FastifyRequest, reply: FastifyReply) => void {
  const readHead = headReader(names);
  return (request, reply) => {
    const head = readHead(request.raw);
    checkTarget(request.raw, head, settings);
    origins.admit(head, request, reply);
    const query = readQuery(request.raw, head, settings.limits);
    if (head.instance.includes(app.instance)) {
      throw new ProblemError('loop_detected', 'The upstream of this agent leads to this agent itself.');
    }
    const moment = app.memory?.moment ?? 0;
    request.state = {
      head,
      query,
      principal: null,
      grant: null,
      sentCredential: null,
      moment,
      startedAt: app.now(),
    };
  };
}
