import { adminTokenId, defaultAccountId } from '../../domain/principal.ts';
import { done, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { startOfBoot } from './boot.ts';
import { doubtAll, doubtInFlight, fenceDoubt } from '../outbox/doubt.ts';
import { keepLogKey } from './log-key.ts';
import { resumeWaits } from './clock-mark.ts';
import { keepRole, type StoreRole } from './role.ts';
import type { Transaction } from '../tables.ts';

export type StartCommand = {
  role: StoreRole;
  /** The digest of `admin.token`. */
  adminTokenDigest: string;
  /** The digest of `api.key` on the first start of an authority; null later. */
  apiKeyDigest: string | null;
  /** The machine and the path of the state directory: a copy of it is told by them. */
  place: string;
  /** `sync.fence`: what was in flight when the process ended may still be on its way. */
  fenceMs: number;
};

/** What this store is, and which start of the process this is. */
export type Started = { instance: string; boot: number };

/** Takes the store into use: counts the start, accepts the admin token, doubts what was in flight. */
export function start(transaction: Transaction, command: StartCommand, context: Context): Result<Started> {
  const { tokens, accounts } = transaction;
  const instance = takePlace(transaction, command.place, context);
  const boot = startOfBoot(transaction);
  if (tokens.byDigest(command.adminTokenDigest) === null) {
    // Whoever removed or replaced the file wants the old one to stop.
    tokens.remove(adminTokenId);
    const token = {
      tokenId: adminTokenId,
      scopes: ['admin'],
      productKey: null,
      accountId: null,
      label: null,
      createdAt: context.now,
    };
    tokens.add(token, command.adminTokenDigest);
  }
  if (command.apiKeyDigest !== null && accounts.get(defaultAccountId) === null) {
    const account = { accountId: defaultAccountId, name: defaultAccountId, createdAt: context.now };
    accounts.add(account, command.apiKeyDigest);
  }
  keepRole(transaction, command.role);
  keepLogKey(transaction, context.random);
  resumeWaits(transaction, context.steady);
  doubtInFlight(transaction);
  fenceDoubt(transaction, context.steady + command.fenceMs);
  return done({ instance, boot });
}

/** A store that is found elsewhere than it was left is another one, and nothing in it is certain. */
function takePlace(transaction: Transaction, place: string, { now, random }: Context): string {
  const { settings } = transaction;
  const instance = settings.get('instance');
  const before = settings.get('place');
  settings.set('place', place);
  if (instance !== null && (before === null || before === place)) return instance;
  if (instance !== null) doubtAll(transaction);
  const made = random.uuid(now);
  settings.set('instance', made);
  return made;
}
