import { clockAdvice, describeClock } from '../domain/clock.ts';
import { counted } from '../domain/text.ts';
import { features } from '../features.ts';
import { askDoctor, type Check, type Checks, endChecks, type Remedy, some } from './check.ts';
import type { Hint, Level } from '../domain/finding.ts';
import type { OutboxObject, StatusObject } from './status.ts';
import { dayMs } from '../domain/time.ts';

const orResume = 'and reload; if it was right all along, resume';

/** A certificate should be renewed when it ends within this time. */
export const certificateEndsSoonMs: number = 30 * dayMs;

const resume = { command: 'sync resume', page: 'settings' };

const ofFeatures = features.map(({ findings }) => findings);

/** All that a status can show to be wrong. */
const checks: Checks = {
  storage_full: {
    level: 'fail',
    find: ({ storage }) =>
      storage === 'full' && 'the disk of the database is full: changes are refused, verify keeps working',
    advice: 'free some space on it; the daemon then continues by itself',
  },
  storage_damaged: {
    level: 'fail',
    find: ({ storage }) => storage === 'damaged' && 'the database is damaged: nothing is changed or sent',
    advice: 'stop the daemon, restore a backup, and start the daemon again',
    command: 'restore FILE',
  },
  storage_unavailable: inStorage('unavailable', 'the database cannot be reached'),
  storage_slow: inStorage('slow', 'the database does not answer in time'),
  storage_read_only: inStorage(
    'read_only',
    'the database is read-only: changes are refused, verify keeps working',
  ),
  storage_refused: inStorage('refused', 'this process cannot use the database'),
  socket_lost: {
    level: 'fail',
    find: ({ listeners }) =>
      listeners.lost.map(
        (path) => `the socket ${path} was removed and cannot be created again: connections to it fail`,
      ),
    advice: 'create its directory again, or restart the daemon; its log says why',
  },
  clock_suspect: {
    level: 'fail',
    find: ({ clock: { suspect, store_ahead_s: aheadS } }) =>
      suspect && describeClock(aheadS === null ? null : aheadS * 1000),
    advice: clockAdvice,
  },
  ...endChecks('certificate', {
    what: 'the certificate of listen.tls',
    endOf: ({ listeners }) => listeners.tls?.not_after,
    ended: 'clients refuse it',
    soonMs: certificateEndsSoonMs,
    advice: 'put a new certificate into the files of listen.tls, and reload',
    command: 'reload',
  }),
  secret_refused: {
    level: 'fail',
    find: ({ upstream }) =>
      upstream?.paused_products.map(
        (product) => `the upstream refuses the secret of the product ${product}: its changes wait`,
      ),
    advice: `put the right secret into the configuration ${orResume}`,
    ...resume,
  },
  api_key_refused: {
    level: 'fail',
    find: ({ upstream }) =>
      upstream?.coupons_paused && 'the upstream refuses the API key: changes of coupons wait',
    advice: `put the right upstream.api_key into the configuration ${orResume}`,
    ...resume,
  },
  sync_paused: {
    level: 'warn',
    find: ({ upstream }) =>
      upstream?.state === 'paused' && `sync has been paused since ${upstream.since}: no change is sent`,
    advice: 'resume it',
    command: 'sync resume',
  },
  upstream_down: {
    level: 'warn',
    find: ({ upstream }) => {
      const why = upstream?.last_error ? `: ${upstream.last_error}` : '';
      return upstream?.state === 'down' && `the upstream has been unavailable since ${upstream.since}${why}`;
    },
    ...askDoctor,
    advice: 'changes wait, and are sent by themselves; the doctor says what is wrong',
  },
  outbox_full: {
    level: 'fail',
    find: ({ outbox }, maxPending) => {
      const waiting = outbox === null ? 0 : outbox.pending + outbox.in_flight + outbox.uncertain;
      const text = `${counted(waiting, 'change waits', 'changes wait')} for the upstream`;
      return waiting >= (maxPending ?? Infinity) && `${text}: further changes are refused (sync.max_pending)`;
    },
    advice: 'find out why they are not sent',
    command: 'outbox list',
    page: 'outbox',
  },
  operations_held: undecided('uncertain', ({ held }) => {
    const changes = some(held, 'change', 'changes');
    return changes && `${changes} may have been applied: a person must decide`;
  }),
  operations_conflicted: undecided('conflicted', ({ conflicted }) => {
    const were = some(conflicted, 'change was', 'changes were');
    return were && `${were} not applied: the upstream had changed before`;
  }),
  operations_dead: undecided('dead', ({ dead }) =>
    some(dead, 'change was refused by the upstream', 'changes were refused by the upstream'),
  ),
  licenses_expired: {
    level: 'warn',
    find: ({ upstream, records }) => {
      const expired = upstream && some(records?.expired, 'license', 'licenses');
      return expired && `${expired} cannot be verified: the upstream confirmed them too long ago`;
    },
    advice: 'they are read again as soon as a program asks for them and the upstream answers',
    page: 'licenses',
  },
  licenses_missing: {
    level: 'warn',
    find: ({ missing_keys: missing }) =>
      missing &&
      `the store has answered 404 since ${missing.since} for ${counted(missing.count, 'license key')} that it knew: they are refused after freshness.gone`,
    advice:
      'if they were not deleted there, compare the secrets and products of the configuration with the store; see which',
    command: 'license list',
    page: 'licenses',
  },
  ...(Object.assign({}, ...ofFeatures) as Checks),
};

/** Only a database that is not on this machine is in these states. */
function inStorage(state: StatusObject['storage'], what: string): Check {
  return { level: 'fail', find: ({ storage }) => storage === state && what, ...askDoctor };
}

function undecided(state: string, find: (outbox: OutboxObject) => string | null): Check {
  return {
    level: 'warn',
    find: ({ outbox }) => outbox && find(outbox),
    advice: 'see what each decision would do, and decide',
    command: `outbox list --state ${state}`,
    page: `outbox?state=${state}`,
  };
}

/** What a check has found. */
export type StatusFinding = Omit<Check, 'find' | 'level'> & { code: string; level: Level; what: string };

const urgency: Readonly<Record<Level, number>> = { fail: 0, warn: 1, ok: 2 };

/** What a status shows to be wrong, the most urgent first. `maxPending`: `sync.max_pending`, if it is known. */
export function findingsOf(status: StatusObject, maxPending: number | null = null): StatusFinding[] {
  const found = Object.entries(checks).flatMap(([code, { find, level: levelOf, ...remedy }]) => {
    const level = typeof levelOf === 'string' ? levelOf : levelOf(status);
    const texts = [find(status, maxPending)].flat();
    return texts.flatMap((what) => (what ? [{ code, level, what, ...remedy }] : []));
  });
  return found.toSorted((one, other) => urgency[one.level] - urgency[other.level]);
}

/** The advice, with the command that helps. */
export function fullAdvice({ advice, command }: Remedy, hint: Hint): string | null {
  return command === undefined ? advice : `${advice}: ${hint(command)}`;
}

/** What to do about a code. */
export function adviceOn(code: string, hint: Hint): string | null {
  const check = checks[code];
  return check === undefined ? null : fullAdvice(check, hint);
}
