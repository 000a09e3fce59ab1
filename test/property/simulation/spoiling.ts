import { StorageError, type Upstream } from '../../../src/service/ports.ts';
import type { Writer } from '../../../src/service/writer.ts';
import { KeyLanes } from '../../../src/sync/key-lanes.ts';
import type { SyncOptions } from '../../../src/sync/sync.ts';
import type { Transport } from '../../../src/upstream/transport.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import type { Machine } from './machine.ts';
import { fenceMs } from './network.ts';

/** One way to spoil the protocol, by what it puts between the parts of the product. */
export type Spoiling = {
  writer?: (writer: Writer, machine: Machine, clock: VirtualClock) => Writer;
  upstream?: (upstream: Upstream) => Upstream;
  transport?: (transport: Transport) => Transport;
  lanes?: () => KeyLanes;
  settings?: (settings: SyncOptions) => SyncOptions;
  beforeStart?: (machine: Machine) => void;
};

/** The protocol as it is. */
export const honest: Required<Spoiling> = {
  writer: (writer) => writer,
  upstream: (upstream) => upstream,
  transport: (transport) => transport,
  lanes: () => new KeyLanes(),
  settings: (settings) => settings,
  beforeStart: () => undefined,
};

/** Ways to spoil the protocol, each of which the simulation must find. */
export const spoilings: Readonly<Record<SpoilingName, Spoiling>> = {
  'the fence removed': withPolicy({ fenceMs: 0 }),
  'a fence that is a second short': withPolicy({ fenceMs: fenceMs - 1_000 }),
  'a blind retry': { upstream: blindly },
  'the in-flight mark written after sending': { beforeStart: unmark },
  'reads outside the lane': { lanes: () => new LooseLanes() },
  "next_at kept after the upstream's return": {
    ...withPolicy({ backoff: { firstMs: 500, maxMs: 900_000 } }),
    writer: (writer) => without(writer, 'endOutage'),
  },
};

export type SpoilingName =
  | 'the fence removed'
  | 'a fence that is a second short'
  | 'a blind retry'
  | 'the in-flight mark written after sending'
  | 'reads outside the lane'
  | "next_at kept after the upstream's return";

function withPolicy(policy: Partial<SyncOptions['policy']>): Spoiling {
  return {
    settings: (settings) => ({ ...settings, policy: { ...settings.policy, ...policy } }),
  };
}

/** A writer whose use case of this name is never carried out. */
function without(writer: Writer, name: string): Writer {
  return {
    write: (asked, command, writeOptions) =>
      asked === name
        ? Promise.reject(new StorageError('full', new Error('spoiled')))
        : writer.write(asked, command, writeOptions),
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

/** Lanes that let reads pass whenever they like. */
class LooseLanes extends KeyLanes {
  override enter(...[subject, lanes, signal]: Parameters<KeyLanes['enter']>): ReturnType<KeyLanes['enter']> {
    if (lanes.length === 1) return super.enter(subject, lanes, signal);
    return Promise.resolve({ overlapped: false, [Symbol.dispose]: () => undefined });
  }
}
