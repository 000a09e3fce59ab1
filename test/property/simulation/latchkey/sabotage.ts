import type { DatabaseSync } from 'node:sqlite';
import type { Dispatcher } from 'undici';
import { idempotencyKeyHeader } from '../../../../src/domain/header-names.ts';
import { KeyedMutex } from '../../../../src/sync/waiting.ts';
import type { Upstream, SyncUpstream, WriteOptions } from '../../../../src/service/ports.ts';
import type { AnsweredRequest } from '../../../../src/features/leases/service/answer.ts';
import type { CommandOf, CommandResult, UseCaseName, Writer } from '../../../../src/service/writer.ts';
import type { Exchange, Transport } from '../../../../src/upstream/exchange.ts';
import type { Machine } from '../machine.ts';
import { deaf } from '../sabotage.ts';
import type { LatchkeySabotage, LatchkeyTroubleName } from './world.ts';

/** A way to corrupt the protocol between Latchkeys, the troubles that show it, and the promise that it breaks. */
type Corruption = { sabotage: LatchkeySabotage; troubles: LatchkeyTroubleName[]; breaks: RegExp };

/** Corruptions of the protocol between Latchkeys that the simulation must find. */
export const latchkeySabotages: Readonly<Record<string, Corruption>> = {
  'a new key for each attempt': {
    sabotage: { agent: { transport: renamed } },
    troubles: [],
    breaks: /never arrived|counted|was applied/,
  },
  'a lost answer taken for a delivery': {
    sabotage: { agent: { upstream: blithely } },
    troubles: [],
    breaks: /never arrived|counted/,
  },
  'two changes of a key at once': {
    sabotage: { agent: { mutex: () => new NoMutex() } },
    troubles: ['bursts'],
    breaks: /order:/,
  },
  'stored answers that all products share': {
    sabotage: { authority: { writer: (writer) => underOtherKeys(writer, () => ({ credential: 'any' })) } },
    troubles: ['stranger'],
    breaks: /stranger:/,
  },
  'stored answers that belong to a secret': {
    sabotage: { authority: { writer: perSecret } },
    troubles: ['secrets'],
    breaks: /count:/,
  },
  'a fingerprint without the license key': {
    sabotage: { authority: { writer: (writer) => underOtherKeys(writer, () => ({ fingerprint: 'any' })) } },
    troubles: ['stranger', 'others'],
    breaks: /stranger:/,
  },
  'answers pruned too early': {
    sabotage: { authority: { beforeStart: ({ database }) => database.exec('DELETE FROM idempotency') } },
    troubles: ['authority_restart'],
    breaks: /count:/,
  },
  'an older answer that replaces a newer one': {
    sabotage: { agent: { writer: forgetRevisions } },
    troubles: ['bursts'],
    breaks: /counted|at rest/,
  },
  'followed keys recorded while a change is under way': {
    sabotage: { agent: { writer: hasty } },
    troubles: ['bursts'],
    breaks: /counted|shown|at rest/,
  },
  'an enable that does not say what its caller has seen': {
    sabotage: { agent: { transport: (transport) => without(transport, /, seen=\d+/) } },
    troubles: ['others', 'seller'],
    breaks: /revocation:/,
  },
  'a repetition that does not say so': {
    sabotage: { agent: { transport: (transport) => without(transport, /, repeat/) } },
    troubles: ['month'],
    breaks: /count:/,
  },
  'changes that do not name the store they are for': {
    sabotage: { agent: { transport: (transport) => without(transport, /, epoch=\w+/) } },
    troubles: ['another_store'],
    breaks: /count:/,
  },
  'a restored upstream that is not noticed': {
    sabotage: { agent: { writer: complacent } },
    troubles: ['authority_restore'],
    breaks: /never arrived|counted/,
  },
  'the plain protocol after the answer of a gateway': {
    sabotage: { agent: { syncUpstream: giveUp } },
    troubles: ['gateway'],
    breaks: /key:/,
  },
  'an upstream that is not recognized': {
    sabotage: { agent: { transport: (transport) => deaf(transport, 'latchkey-epoch') } },
    troubles: [],
    breaks: /key:/,
  },
  'an agent in the middle that gives changes from below new ids': {
    sabotage: { agent: { writer: renaming } },
    troubles: ['chain'],
    breaks: /never arrived|count:|counted/,
  },
  'a void that gives two uses back': {
    sabotage: { authority: { writer: generous } },
    troubles: ['coupons'],
    breaks: /count: the coupon/,
  },
  'the limit of a coupon not looked at': {
    sabotage: { authority: { writer: unlimited } },
    troubles: ['coupons', 'others'],
    breaks: /limit:/,
  },
  'an end that agents put off': {
    sabotage: { agent: { writer: (writer, machine) => withEnds(writer, machine, 3_600_000) } },
    troubles: ['ends'],
    breaks: /end:|lease:/,
  },
  'an end that comes too early at agents': {
    sabotage: { agent: { writer: (writer, machine) => withEnds(writer, machine, -3_600_000) } },
    troubles: ['ends'],
    breaks: /end:|lease:/,
  },
  'a lease that is longer than its license': {
    sabotage: { authority: { writer: generousIssuer }, agent: { writer: generousIssuer } },
    troubles: ['ends'],
    breaks: /lease:/,
  },
  'an answer to a caller that is not remembered': {
    sabotage: { agent: { writer: absentMinded } },
    troubles: ['coupons', 'others'],
    breaks: /lost:/,
  },
};

type Written = { name: UseCaseName; command: never; options: Partial<WriteOptions> };

/** A writer that does something else; `write` runs a use case. */
function between(
  writer: Writer,
  around: (written: Written, write: (changed: Partial<Written>) => Promise<unknown>) => Promise<unknown>,
): Writer {
  const write = (name: UseCaseName, command: never, options: Partial<WriteOptions> = {}): Promise<unknown> =>
    around({ name, command, options }, (other) =>
      writer.write(name, other.command ?? command, other.options ?? options),
    );
  // What a use case gives belongs to its name, which the compiler cannot follow through here.
  return { write: write as Writer['write'] };
}

/** What was delivered does not return to the outbox. */
function complacent(writer: Writer, { database }: Machine): Writer {
  return between(writer, async ({ name }, write) => {
    if (name !== 'resumeDelivered') return await write({});
    database.exec("UPDATE setting SET value = '' WHERE name = 'resume'");
    return { ok: true, value: { resumed: 0, tooOld: 0, isOver: true } };
  });
}

/** A writer of the authority that stores its answers under other credentials or fingerprints. */
function underOtherKeys(writer: Writer, change: () => { credential?: string; fingerprint?: string }): Writer {
  return between(writer, ({ options }, write) => {
    const { idempotency = null } = options;
    if (idempotency === null) return write({});
    return write({ options: { ...options, idempotency: { ...idempotency, ...change() } } });
  });
}

function perSecret(writer: Writer, { database }: Machine): Writer {
  const read = database.prepare('SELECT secret_digest AS digest FROM product ORDER BY product_key DESC');
  return underOtherKeys(writer, () => ({ credential: String(read.get()?.['digest']) }));
}

type Request = Dispatcher.DispatchOptions;

/** A transport with other requests or exchanges. */
function changed(
  transport: Transport,
  {
    request: ofRequest = (request) => request,
    exchange: ofExchange = (exchange) => exchange,
  }: {
    request?: (request: Request) => Request;
    exchange?: (exchange: Exchange) => Exchange;
  },
): Transport {
  return {
    ...transport,
    async send(request, ...rest) {
      const { exchange, discard } = await transport.send(ofRequest(request), ...rest);
      return { exchange: ofExchange(exchange), discard };
    },
  };
}

function withHeader(request: Request, name: string, change: (value: string) => string): Request {
  const headers = request.headers as Record<string, string>;
  const value = headers[name.toLowerCase()];
  return value === undefined
    ? request
    : { ...request, headers: { ...headers, [name.toLowerCase()]: change(value) } };
}

function renamed(transport: Transport): Transport {
  let attempts = 0;
  const request = (sent: Request): Request =>
    withHeader(sent, idempotencyKeyHeader, (key) => {
      attempts += 1;
      return key.slice(0, -4) + attempts.toString(16).padStart(4, '0');
    });
  return changed(transport, { request });
}

/** `Latchkey-Operation` without a member. */
function without(transport: Transport, member: RegExp): Transport {
  const request = (sent: Request): Request =>
    withHeader(sent, 'Latchkey-Operation', (value) => value.replace(member, ''));
  return changed(transport, { request });
}

/** A client with some calls replaced. */
function replaced<Client extends object>(client: Client, calls: Partial<Client>): Client {
  return new Proxy(client, {
    get(target, name): unknown {
      if (name in calls) return calls[name as keyof Client];
      const call = Reflect.get(target, name) as (...parameters: unknown[]) => unknown;
      return call.bind(target);
    },
  });
}

function blithely(upstream: Upstream): Upstream {
  return replaced(upstream, {
    async change(change, signal) {
      const outcome = await upstream.change(change, signal);
      if (outcome.outcome !== 'ambiguous') return outcome;
      return await upstream.verify(change.productId, change.licenseKey, signal);
    },
  });
}

function giveUp(upstream: SyncUpstream, { database }: Machine): SyncUpstream {
  return replaced(upstream, {
    async ask(...parameters) {
      const outcome = await upstream.ask(...parameters);
      if (outcome.outcome === 'not_applied' && outcome.reason === 'missing')
        database.exec("UPDATE setting SET value = 'plain' WHERE name = 'upstream_epoch'");
      return outcome;
    },
  });
}

const attempt = 'state, unanswered, base_uses, sent_at';

/** What followed keys are is recorded as if no change were under way, and none had been without an answer. */
function hasty(writer: Writer, { database }: Machine): Writer {
  return between(writer, async ({ name }, write) => {
    if (name !== 'recordChanges') return await write({});
    database.exec(
      `CREATE TEMP TABLE IF NOT EXISTS under_way AS SELECT id, ${attempt} FROM outbox WHERE false;
       INSERT INTO under_way SELECT id, ${attempt} FROM outbox WHERE state = 'in_flight' OR unanswered = 1;
       UPDATE outbox SET (${attempt}) = ('pending', 0, NULL, NULL) WHERE id IN (SELECT id FROM under_way)`,
    );
    const result = await write({});
    database.exec(
      `UPDATE outbox SET (${attempt}) = (SELECT ${attempt} FROM under_way WHERE under_way.id = outbox.id)
       WHERE id IN (SELECT id FROM under_way);
       DELETE FROM under_way`,
    );
    return result;
  });
}

/** No answer is older than what is known. */
function forgetRevisions(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (_, write) => {
    const result = await write({});
    database.exec('UPDATE license_snapshot SET revision = NULL WHERE revision IS NOT NULL');
    return result;
  });
}

/** Changes of agents below get new ids. */
function renaming(writer: Writer): Writer {
  return between(writer, ({ name, command }, write) => {
    if (name !== 'queueChange') return write({});
    return write({ command: { ...(command as CommandOf<'queueChange'>), below: null } as never });
  });
}

class NoMutex extends KeyedMutex {
  override enter(): ReturnType<KeyedMutex['enter']> {
    return Promise.resolve({ overlapped: false, [Symbol.dispose]: () => undefined });
  }
}

function generous(writer: Writer, { database }: { database: DatabaseSync }): Writer {
  return between(writer, async ({ name }, write) => {
    const result = await write({});
    if (name === 'voidRedemption')
      database.exec('UPDATE redemption_count SET count = count - 1 WHERE count > 0');
    return result;
  });
}

/** What an agent reads of a license has another end. */
function withEnds(writer: Writer, { database }: Machine, byMs: number): Writer {
  return between(writer, async (_, write) => {
    const before = new Map(ends(database));
    const result = await write({});
    const move = database.prepare(
      'UPDATE license_snapshot SET expires_at = expires_at + ? WHERE license_key = ?',
    );
    for (const [key, end] of ends(database)) if (before.get(key) !== end) move.run(byMs, key);
    return result;
  });
}

function ends(database: DatabaseSync): [string, number][] {
  const rows = database.prepare(
    'SELECT license_key AS key, expires_at AS end FROM license_snapshot WHERE expires_at IS NOT NULL',
  );
  return (rows.all() as { key: string; end: number }[]).map(({ key, end }) => [key, end]);
}

/** Leases are valid for an hour more. */
function generousIssuer(writer: Writer): Writer {
  return between(writer, async ({ name }, write) => {
    const result = await write({});
    if (name !== 'answerLeaseRequest' && name !== 'answerAgentLeaseRequest') return result;
    const { ok, value } = result as CommandResult<'answerLeaseRequest'> & { value?: AnsweredRequest };
    if (ok && value?.answer.kind === 'lease') value.answer.lease.expiresAt += 3_600_000;
    return result;
  });
}

/** Each redemption counts as one whose caller has been answered. */
function unlimited(writer: Writer): Writer {
  return between(writer, ({ name, command }, write) => {
    if (name !== 'redeemCoupon') return write({});
    return write({ command: { ...(command as CommandOf<'redeemCoupon'>), takenAt: 1 } as never });
  });
}

/** A refusal of the upstream undoes what a caller was answered without it. */
function absentMinded(writer: Writer, { database }: Machine): Writer {
  return between(writer, async ({ name }, write) => {
    const result = await write({});
    if (name === 'answerRedemption')
      database.exec(
        `UPDATE outbox SET payload = json_set(payload, '$.isAwaited', json('true'))
         WHERE kind = 'redeem' AND state IN ('pending', 'in_flight')`,
      );
    return result;
  });
}
