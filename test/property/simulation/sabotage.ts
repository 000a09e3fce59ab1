import { done, failWith } from '../../../src/domain/problem/problem.ts';
import type { SyncUpstream, Upstream, WriteOptions } from '../../../src/service/ports.ts';
import type { CommandOf, UseCaseName, Writer } from '../../../src/service/writer.ts';
import { KeyedMutex } from '../../../src/sync/waiting.ts';
import type { SyncOptions } from '../../../src/sync/options.ts';
import type { Transport } from '../../../src/upstream/exchange.ts';
import type { VirtualClock } from '../../support/harness/virtual-clock.ts';
import type { Machine } from './machine.ts';
import { reconcileAfterMs } from './network.ts';

/** One way to corrupt the protocol, by what it puts between the parts of the product. */
export type Sabotage = {
  writer?: (writer: Writer, machine: Machine, clock: VirtualClock) => Writer;
  upstream?: (upstream: Upstream) => Upstream;
  /** The client of the change feed. */
  syncUpstream?: (upstream: SyncUpstream, machine: Machine) => SyncUpstream;
  transport?: (transport: Transport) => Transport;
  mutex?: () => KeyedMutex;
  settings?: (settings: SyncOptions) => SyncOptions;
  beforeStart?: (machine: Machine) => void;
};

/** The protocol as it is. */
export const honest: Required<Sabotage> = {
  writer: (writer) => writer,
  upstream: (upstream) => upstream,
  syncUpstream: (upstream) => upstream,
  transport: (transport) => transport,
  mutex: () => new KeyedMutex(),
  settings: (settings) => settings,
  beforeStart: () => undefined,
};

/** Corruptions of the protocol that the simulation must find. */
export const sabotages: Readonly<Record<SabotageName, Sabotage>> = {
  'the reconcile delay removed': withPolicy({ reconcileAfterMs: 0 }),
  'a reconcile delay that is a second short': withPolicy({ reconcileAfterMs: reconcileAfterMs - 1_000 }),
  'a blind retry': { upstream: blindly },
  'the in-flight mark written after sending': { beforeStart: unmark },
  'reads outside the queue': { mutex: () => new LooseMutex() },
  'other writers not reckoned with': withPolicy({ writers: 'single' }),
  'a person who overrides the reconcile delay': { writer: overriding },
  'a restore that doubts nothing': { writer: (writer) => idle(writer, 'restore') },
  'a copy taken for the original': { writer: placed },
  'a refusal taken for a delivery': { upstream: blithely },
  'an answer lost to a full disk': { writer: forgetful },
  'the age of an answer not looked at': { transport: (transport) => deaf(transport, 'age') },
  'stored dates that stay when the time goes back': { writer: (writer) => idle(writer, 'correctDates') },
  'Retry-After not heard': { transport: (transport) => deaf(transport, 'retry-after') },
  'one secret for all products': { transport: withOneSecret },
  'an unknown history that is not waited for': {
    writer: (writer, machine) =>
      meddled(writer, machine, "UPDATE setting SET value = '0' WHERE name = 'unknown_history_until'"),
  },
  'a lost disable taken for one that was never sent': {
    writer: (writer, machine) =>
      meddled(writer, machine, "UPDATE outbox SET maybe_applied = 0 WHERE kind = 'disable'"),
  },
  'a coupon sent again unseen': { writer: hasty },
  'a count taken for known after a decision': { writer: trusting },
  'products that are not remembered': { writer: (writer) => idle(writer, 'bindUpstream') },
  'next_at kept after the return of the upstream': { writer: (writer) => idle(writer, 'endOutage') },
};

export type SabotageName =
  | 'the reconcile delay removed'
  | 'a reconcile delay that is a second short'
  | 'a blind retry'
  | 'the in-flight mark written after sending'
  | 'reads outside the queue'
  | 'other writers not reckoned with'
  | 'a person who overrides the reconcile delay'
  | 'a restore that doubts nothing'
  | 'a copy taken for the original'
  | 'a refusal taken for a delivery'
  | 'an answer lost to a full disk'
  | 'the age of an answer not looked at'
  | 'stored dates that stay when the time goes back'
  | 'Retry-After not heard'
  | 'one secret for all products'
  | 'an unknown history that is not waited for'
  | 'a lost disable taken for one that was never sent'
  | 'a coupon sent again unseen'
  | 'a count taken for known after a decision'
  | 'products that are not remembered'
  | 'next_at kept after the return of the upstream';

function withPolicy(policy: Partial<SyncOptions['policy']>): Sabotage {
  return {
    settings: (settings) => ({ ...settings, policy: { ...settings.policy, ...policy } }),
  };
}

/** A writer with something put before and after what it does. */
function between(
  writer: Writer,
  around: (name: UseCaseName, write: () => Promise<unknown>) => Promise<unknown>,
): Writer {
  const write = (name: UseCaseName, ...rest: [CommandOf<UseCaseName>, Partial<WriteOptions>?]) =>
    around(name, () => writer.write(name, ...rest));
  // What a use case gives belongs to its name, which the compiler cannot follow through here.
  return { write: write as Writer['write'] };
}

/** A writer whose use case of this name does nothing, and says that it did. */
function idle(writer: Writer, name: UseCaseName): Writer {
  return between(writer, (asked, write) => (asked === name ? Promise.resolve(done(null)) : write()));
}

/** A writer after each of whose writes the store is changed. */
function meddled(writer: Writer, { database }: Machine, sql: string): Writer {
  return between(writer, async (_, write) => {
    const result = await write();
    database.exec(sql);
    return result;
  });
}

/** A creation that a person retries is sent at once, wherever it may be. */
function hasty(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (name, write) => {
    const result = await write();
    if (name === 'decideOperation') {
      database.exec(
        `UPDATE outbox SET state = 'pending' WHERE kind = 'create_coupon' AND state = 'uncertain' AND held = 0`,
      );
    }
    return result;
  });
}

/** A person's decision makes everything due at once, and forgets what may still be on its way. */
function overriding(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (name, write) => {
    const result = await write();
    if (name === 'decideOperation') {
      database.exec('UPDATE outbox SET next_at = 0 WHERE next_at IS NOT NULL');
      database.exec('UPDATE outbox SET reconcile_at = NULL');
    }
    return result;
  });
}

/** After a person's decision uses are counted on from what was seen before. */
function trusting(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (name, write) => {
    const result = await write();
    if (name === 'decideOperation') {
      database.exec(
        `UPDATE license_snapshot SET run = (SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'run') WHERE run = 0`,
      );
    }
    return result;
  });
}

/** Wherever it is started, it is where it was. */
function placed(writer: Writer): Writer {
  return {
    write: (asked, command, writeOptions) =>
      writer.write(asked, 'place' in command ? { ...command, place: 'here' } : command, writeOptions),
  };
}

/** What could not be recorded at once is not recorded, and the operation goes back to where it came from. */
function forgetful(writer: Writer, machine: Machine): Writer {
  return between(writer, async (name, write) => {
    try {
      return await write();
    } catch (error) {
      if (name !== 'recordResponse') throw error;
      unmark(machine);
      return failWith('operation_not_open', 'corrupted');
    }
  });
}

/** A client that takes a refusal for success. */
function blithely(upstream: Upstream): Upstream {
  return new Proxy(upstream, {
    get(target, name) {
      if (name !== 'change') return Reflect.get(target, name).bind(target) as unknown;
      const change: Upstream['change'] = async (asked, signal) => {
        const outcome = await target.change(asked, signal);
        if (outcome.outcome !== 'not_applied' || outcome.reason !== 'refused') return outcome;
        return await target.verify(asked.productId, asked.licenseKey, signal);
      };
      return change;
    },
  });
}

/** A client that never sees a header of this name. */
export function deaf(transport: Transport, name: string): Transport {
  return {
    ...transport,
    async send(...sent) {
      const { exchange, discard } = await transport.send(...sent);
      if (exchange.type === 'failed') return { exchange, discard };
      return { exchange: { ...exchange, headers: { ...exchange.headers, [name]: undefined } }, discard };
    },
  };
}

const oneSecret = { 'product-secret-key': 'secret of product-0' };

function withOneSecret(transport: Transport): Transport {
  return {
    ...transport,
    send: (request, signal) =>
      transport.send({ ...request, headers: Object.assign({}, request.headers, oneSecret) }, signal),
  };
}

/** A client that repeats a request whose answer it did not get, as a retry layer would. */
function blindly(upstream: Upstream): Upstream {
  return new Proxy(upstream, {
    get(target, name) {
      if (name !== 'change') return Reflect.get(target, name).bind(target) as unknown;
      const change: Upstream['change'] = async (...parameters) => {
        const first = await target.change(...parameters);
        return first.outcome === 'ambiguous' ? await target.change(...parameters) : first;
      };
      return change;
    },
  });
}

/** As if the mark had been written after sending: a crash in between leaves no trace of the attempt. */
function unmark({ database }: Machine): void {
  database.exec(
    `UPDATE outbox SET state = 'pending', base_uses = NULL, sent_at = NULL, next_at = 0
     WHERE state = 'in_flight'`,
  );
}

/** Queues that do not hold reads back. */
class LooseMutex extends KeyedMutex {
  override enter(
    ...[subject, queues, signal]: Parameters<KeyedMutex['enter']>
  ): ReturnType<KeyedMutex['enter']> {
    if (queues.length === 1) return super.enter(subject, queues, signal);
    return Promise.resolve({ overlapped: false, [Symbol.dispose]: () => undefined });
  }
}
