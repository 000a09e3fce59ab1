import { z } from 'zod';
import { done } from '../../../domain/problem/problem.ts';
import type { ReceivedEvent } from '../service/store-event.ts';
import { parameters } from '../../../wire/parameters.ts';
import { route, type Route } from '../../../http/route.ts';

/** The maximum size of an event. */
const maxEventBytes = 64 * 1024;

/** The body and the headers as they were sent: a signature covers every byte. */
export type SentEvent = Pick<ReceivedEvent, 'body' | 'headers'>;

const nothing: SentEvent = { body: Buffer.alloc(0), headers: {} };

const receive = route({
  method: 'POST',
  path: '/hooks/v1/:name',
  operationId: 'receiveStoreEvent',
  tag: 'Webhooks',
  summary:
    'An event of a store: the agent reads the license keys that it is about. Every event gets 200, also one that is not understood',
  access: 'anyone',
  isPublic: true,
  takesEvent: true,
  bodyBytes: maxEventBytes,
  // Anybody can send events: their results are logged once a minute.
  readsOnly: true,
  roles: ['agent'],
  elsewhere: { detail: 'Only an agent receives events of a store.' },
  body: parameters({ event: z.custom<SentEvent>().default(nothing) }),
  answers: { 200: null },
  async handle({ app, path: { name }, body: { event }, sentTo: { query } }) {
    const secret = query.get('secret');
    await app.storeEvents.receive({ ...event, name, secret: typeof secret === 'string' ? secret : null });
    // Stores send an event again that gets another status.
    return done({ status: 200, headers: {}, body: undefined });
  },
});

/** What stores send (src/http/README.md, Events of stores). */
export const storeEventRoutes: readonly Route[] = [receive];
