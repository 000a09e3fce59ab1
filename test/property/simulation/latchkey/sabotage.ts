import type { DatabaseSync } from 'node:sqlite';
import type { PushAnswer, SyncUpstream } from '../../../../src/service/ports.ts';
import type { CommandOf, UseCaseName, Writer } from '../../../../src/service/writer.ts';
import type { Outcome } from '../../../../src/domain/outbox/outcome.ts';
import type { Machine } from '../machine.ts';
import type { LatchkeySabotage, LatchkeyTroubleName } from './world.ts';

/** A way to corrupt `/sync/v1`, the troubles that show it, and the promise that it breaks. */
type Corruption = { sabotage: LatchkeySabotage; troubles: LatchkeyTroubleName[]; breaks: RegExp };

/** Corruptions of `/sync/v1` that the simulation must find. */
export const latchkeySabotages: Readonly<Record<string, Corruption>> = {
  'a push that is written again for each attempt': {
    sabotage: { agent: { syncUpstream: writeEachTimeAnew, writer: (writer) => idle(writer, 'storePush') } },
    troubles: [],
    breaks: /identities|counted/,
  },
  'a push that is forgotten by a start': {
    sabotage: { agent: { beforeStart: forgetPush } },
    troubles: [],
    breaks: /identities|counted/,
  },
  'a lost answer taken for a delivery': {
    sabotage: { agent: { syncUpstream: blithely } },
    troubles: [],
    breaks: /never arrived|counted/,
  },
  'changes recorded in any order with pushes': {
    sabotage: { agent: { writer: inAnyOrder } },
    troubles: ['bursts'],
    breaks: /counted|at rest/,
  },
  'revocations behind uses': {
    sabotage: { agent: { syncUpstream: usesFirst } },
    troubles: ['bursts'],
    breaks: /revocation/,
  },
  'the plain protocol after a 404': {
    sabotage: { agent: { syncUpstream: giveUp } },
    troubles: ['gateway'],
    breaks: /protocol/,
  },
  'every change of a restored agent taken for delivered': {
    sabotage: { agent: { syncUpstream: everythingKnown } },
    troubles: ['agent_restore'],
    breaks: /never arrived|counted/,
  },
  'operations that an authority does not know by their ids': {
    sabotage: { authority: { writer: forgetful } },
    troubles: ['agent_restore', 'authority_restore', 'copy'],
    breaks: /count:/,
  },
  'a reset that is not noticed': {
    sabotage: { agent: { syncUpstream: deafToResets } },
    troubles: ['authority_restore', 'seller'],
    breaks: /at rest/,
  },
  'changes of coupons with new ids after a lost answer': {
    sabotage: { agent: { syncUpstream: renamed } },
    troubles: ['coupons'],
    breaks: /nobody has made|lost:/,
  },
  'a void that gives two uses back': {
    sabotage: { authority: { writer: generous } },
    troubles: ['coupons'],
    breaks: /count:/,
  },
  'the limit of a coupon not looked at': {
    sabotage: { authority: { writer: unlimited } },
    troubles: ['coupons', 'others'],
    breaks: /limit:/,
  },
  'an answer to a caller that is not remembered': {
    sabotage: { agent: { writer: absentMinded } },
    troubles: ['coupons', 'others'],
    breaks: /lost:/,
  },
};

function idle(writer: Writer, name: UseCaseName): Writer {
  return between(writer, (asked, command, write) =>
    asked === name ? Promise.resolve({ ok: true, value: null }) : write(command),
  );
}

/** A writer that does something else; `write` runs a use case. */
function between(
  writer: Writer,
  around: (
    name: UseCaseName,
    command: never,
    write: (command: never) => Promise<unknown>,
  ) => Promise<unknown>,
): Writer {
  const write = (name: UseCaseName, command: never, options: object = {}): Promise<unknown> =>
    around(name, command, (changed) => writer.write(name, changed, options));
  // What a use case gives belongs to its name, which the compiler cannot follow through here.
  return { write: write as Writer['write'] };
}

/** The client of `/sync/v1` with some calls replaced. */
function replaced(upstream: SyncUpstream, calls: Partial<SyncUpstream>): SyncUpstream {
  return new Proxy(upstream, {
    get(target, name): unknown {
      if (name in calls) return calls[name as keyof SyncUpstream];
      const call = Reflect.get(target, name) as (...parameters: unknown[]) => unknown;
      return call.bind(target);
    },
  });
}

function writeEachTimeAnew(upstream: SyncUpstream): SyncUpstream {
  let written = 0;
  return replaced(upstream, {
    writePush(...push) {
      written += 1;
      return JSON.stringify({ ...(JSON.parse(upstream.writePush(...push)) as object), written });
    },
  });
}

function forgetPush({ database }: Machine): void {
  database.exec('DELETE FROM push');
  database.exec(
    "UPDATE outbox SET state = 'pending', base_uses = NULL, sent_at = NULL, next_at = 0 WHERE state = 'in_flight'",
  );
}

function blithely(upstream: SyncUpstream): SyncUpstream {
  return replaced(upstream, {
    async push(...parameters): Promise<Outcome<PushAnswer>> {
      const outcome = await upstream.push(...parameters);
      if (outcome.outcome !== 'ambiguous') return outcome;
      const value: PushAnswer = { kind: 'results', epoch: '', results: {} };
      return { outcome: 'applied', value, confirmedAt: 0, isCached: false };
    },
  });
}

/** Each answer about followed keys looks as if it contained exactly the pushes that are answered. */
function inAnyOrder(writer: Writer, { database }: Machine): Writer {
  const answered = answeredIn(database);
  return between(writer, (asked, command, write) => {
    if (asked !== 'recordChanges') return write(command);
    const { answer, ...others } = command as CommandOf<'recordChanges'>;
    return write({ ...others, answer: { ...answer, lastSeq: answered() } } as never);
  });
}

function answeredIn(database: DatabaseSync): () => number {
  const read = database.prepare('SELECT coalesce(max(seq + answered - 1), 0) AS seq FROM push');
  return () => Number(read.get()?.['seq'] ?? 0);
}

function usesFirst(upstream: SyncUpstream): SyncUpstream {
  return replaced(upstream, {
    writePush(agent, seq, operations) {
      const isUse = ({ kind }: { kind: string }): boolean => kind === 'usage' || kind === 'decrease';
      return upstream.writePush(agent, seq, [
        ...operations.filter(isUse),
        ...operations.filter((each) => !isUse(each)),
      ]);
    },
  });
}

function giveUp(upstream: SyncUpstream, { database }: Machine): SyncUpstream {
  return replaced(upstream, {
    async push(...parameters) {
      const outcome = await upstream.push(...parameters);
      if (outcome.outcome === 'not_applied' && outcome.reason === 'missing')
        database.exec("UPDATE setting SET value = 'plain' WHERE name = 'upstream_protocol'");
      return outcome;
    },
  });
}

function everythingKnown(upstream: SyncUpstream): SyncUpstream {
  return replaced(upstream, {
    async known(...parameters) {
      const outcome = await upstream.known(...parameters);
      if (outcome.outcome !== 'applied') return outcome;
      return { ...outcome, value: outcome.value.map((each) => ({ ...each, outcome: 'applied' as const })) };
    },
  });
}

/** While a push is carried out, no operation of an earlier one is known. */
function forgetful(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (asked, command, write) => {
    if (asked !== 'applyPush') return await write(command);
    database.exec('CREATE TEMP TABLE IF NOT EXISTS known AS SELECT * FROM sync_operation WHERE false');
    database.exec('INSERT INTO known SELECT * FROM sync_operation; DELETE FROM sync_operation');
    const result = await write(command);
    database.exec('INSERT OR IGNORE INTO sync_operation SELECT * FROM known; DELETE FROM known');
    return result;
  });
}

function deafToResets(upstream: SyncUpstream): SyncUpstream {
  return replaced(upstream, {
    async changes(...parameters) {
      const outcome = await upstream.changes(...parameters);
      return outcome.outcome === 'applied'
        ? { ...outcome, value: { ...outcome.value, isReset: false } }
        : outcome;
    },
  });
}

function renamed(upstream: SyncUpstream, { database }: Machine): SyncUpstream {
  return replaced(upstream, {
    async push(reach, ...parameters) {
      const outcome = await upstream.push(reach, ...parameters);
      if (reach !== null || outcome.outcome !== 'ambiguous') return outcome;
      database.exec("UPDATE push SET answered = 1, body = NULL WHERE product_key = ''");
      database.exec(
        `UPDATE outbox SET id = substr(id, 1, 15) || printf('%03x', attempts) || substr(id, 19),
           state = 'pending', base_uses = NULL, sent_at = NULL, push_seq = NULL
         WHERE state = 'in_flight' AND product_key IS NULL`,
      );
      return outcome;
    },
  });
}

function generous(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (asked, command, write) => {
    const result = await write(command);
    if (asked !== 'applyPush') return result;
    const { operations } = command as CommandOf<'applyPush'>;
    if (operations.some(({ kind }) => kind === 'void'))
      database.exec('UPDATE redemption_count SET count = count - 1 WHERE count > 0');
    return result;
  });
}

/** Each redemption counts as one whose caller has been answered. */
function unlimited(writer: Writer): Writer {
  return between(writer, (asked, command, write) => {
    if (asked !== 'applyPush') return write(command);
    const { operations, ...others } = command as CommandOf<'applyPush'>;
    const provisional = operations.map((each) =>
      each.kind === 'redeem' ? { ...each, provisional: true } : each,
    );
    return write({ ...others, operations: provisional } as never);
  });
}

/** A refusal of the upstream undoes what a caller was answered without it. */
function absentMinded(writer: Writer, { database }: Machine): Writer {
  return between(writer, async (asked, command, write) => {
    const result = await write(command);
    if (asked === 'answerRedemption')
      database.exec(
        `UPDATE outbox SET payload = json_set(payload, '$.isAwaited', json('true'))
         WHERE kind = 'redeem' AND state IN ('pending', 'in_flight')`,
      );
    return result;
  });
}
