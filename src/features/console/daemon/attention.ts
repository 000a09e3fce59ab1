import { dayMs, formatDatetime } from '../../../domain/time.ts';
import { clockAdvice, counted, describeClock } from '../../../domain/text.ts';
import type { OperationState } from '../../../domain/outbox/operation.ts';
import { keyEndsSoonMs } from '../../leases/signing-keys.ts';
import type { Attention, Status, StorageState } from '../../../service/status.ts';
import { serializeUpstream } from '../../../wire/server/upstream.ts';
import { soonMs } from '../../../daemon/certificate.ts';
import { examineFollowing } from '../../following/daemon/examine-following.ts';
import { describeMissing } from '../../../daemon/doctor/status.ts';

type Settings = {
  /** `sync.max_pending`; null: not an agent. */
  maxPending: number | null;
};

/** What needs a person, the most urgent first. It names instants and no ages, so that it stays the same for a while. */
export function attentionOf(status: Status, settings: Settings): readonly Attention[] {
  const found = [
    ...storageAttention(status.storage),
    ...status.listeners.lost.map(lostSocket),
    ...clockAttention(status),
    ...endOf('certificate', status.listeners.tls?.notAfter ?? null, status),
    ...endOf('signing_key', status.issuer?.notAfter ?? null, status),
    ...leaseAttention(status),
    ...upstreamAttention(status),
    ...outboxAttention(status, settings),
    ...expiredAttention(status),
    ...missingAttention(status),
    ...webhookAttention(status),
  ];
  return found.toSorted((one, other) => Number(other.level === 'fail') - Number(one.level === 'fail'));
}

type Words = Pick<Attention, 'text' | 'advice'> & Partial<Pick<Attention, 'command' | 'page'>>;

function fail(code: string, words: Words): Attention {
  return { command: null, page: null, ...words, code, level: 'fail' };
}

function warn(code: string, words: Words): Attention {
  return { ...fail(code, words), level: 'warn' };
}

const seeDoctor = { advice: 'See what the doctor says about the database.', page: 'doctor' };

const ofStorage: Readonly<Record<Exclude<StorageState, 'ok'>, Words>> = {
  full: {
    text: 'The disk of the store is full: changes are refused.',
    advice: 'Free some space on it. The daemon then goes on by itself.',
  },
  damaged: {
    text: 'The store is damaged: nothing is changed or sent.',
    advice: 'Stop the daemon, restore a backup, and start the daemon again.',
    command: 'latchkey restore FILE',
  },
  unavailable: { text: 'The database cannot be reached.', ...seeDoctor, command: 'latchkey doctor' },
  slow: { text: 'The database answers too slowly.', ...seeDoctor, command: 'latchkey doctor' },
  read_only: {
    text: 'The database is read-only: changes are refused.',
    ...seeDoctor,
    command: 'latchkey doctor',
  },
  refused: {
    text: 'The database cannot be used by this process.',
    ...seeDoctor,
    command: 'latchkey doctor',
  },
};

function storageAttention(storage: StorageState): Attention[] {
  return storage === 'ok' ? [] : [fail(`storage_${storage}`, ofStorage[storage])];
}

function lostSocket(path: string): Attention {
  return fail('socket_lost', {
    text: `The socket ${path} was removed and cannot be created again: connections to it fail.`,
    advice: 'Create its directory again, or restart the daemon. Its log says why.',
  });
}

function clockAttention({ clock }: Status): Attention[] {
  if (!clock.suspect) return [];
  const { storeAheadMs } = clock;
  const text = sentence(capitalized(describeClock(storeAheadMs)));
  const advice = sentence(capitalized(clockAdvice(storeAheadMs)));
  return [fail('clock_suspect', { text, advice })];
}

const ending = {
  certificate: {
    soonMs,
    what: 'The certificate of listen.tls',
    ended: 'clients refuse it',
    advice: 'Put a new certificate into the files of listen.tls, and reload.',
    command: 'latchkey reload',
  },
  signing_key: {
    soonMs: keyEndsSoonMs,
    what: 'The last signing key of leases',
    ended: 'devices get no leases',
    advice: 'Make the next signing key.',
    command: 'latchkey lease signing-key rotate --root FILE',
  },
} as const;

function endOf(of: keyof typeof ending, notAfter: number | null, { clock }: Status): Attention[] {
  const { soonMs: noticeMs, what, ended, advice, command } = ending[of];
  if (notAfter === null || notAfter - clock.now >= noticeMs) return [];
  const at = formatDatetime(notAfter);
  return notAfter <= clock.now
    ? [fail(`${of}_ended`, { text: `${what} ended on ${at}: ${ended}.`, advice, command })]
    : [warn(`${of}_ends_soon`, { text: `${what} ends on ${at}.`, advice, command })];
}

/** A lease that ends this soon without an issuer is urgent, in ms. */
const urgentMs = 7 * dayMs;

/** At a holder: the issuer does not answer, or leases have ended. */
function leaseAttention({ leases, records, clock }: Status): Attention[] {
  if (leases === null) return [];
  const { issuer, lastError, lastErrorAt, lastSuccessAt, nextEnd } = leases;
  const found: Attention[] = [];
  const advice = 'The doctor says what is wrong with the connection to the issuer.';
  const doctor = { advice, command: 'latchkey doctor', page: 'doctor' };
  const expired = records?.expired ?? 0;
  if (expired > 0) {
    const text = `${counted(expired, 'lease has', 'leases have')} ended: programs get no license from them.`;
    found.push(fail('leases_ended', { text, ...doctor }));
  }
  if (lastError !== null && (lastErrorAt ?? 0) > (lastSuccessAt ?? 0)) {
    const end = nextEnd === null ? '' : ` The first lease ends on ${formatDatetime(nextEnd)}.`;
    const report = nextEnd !== null && nextEnd - clock.now < urgentMs ? fail : warn;
    const text = `The issuer ${issuer} does not renew leases: ${sentence(lastError)}${end}`;
    found.push(report('issuer_unavailable', { text, ...doctor }));
  }
  return found;
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Errors of others may end without a full stop. */
function sentence(error: string): string {
  return error.replace(/[^.!?]$/, '$&.');
}

const orResume = 'and reload; or resume if it was right all along.';

function upstreamAttention(status: Status): Attention[] {
  const { upstream } = status;
  if (upstream === null) return [];
  const resume = { command: 'latchkey sync resume', page: 'settings' };
  const refused = upstream.pausedProducts.map((product) =>
    fail('secret_refused', {
      text: `The upstream refuses the secret of the product ${product}: its changes wait.`,
      advice: `Put the right secret into the configuration ${orResume}`,
      ...resume,
    }),
  );
  if (upstream.couponsPaused) {
    refused.push(
      fail('api_key_refused', {
        text: 'The upstream refuses the API key: changes of coupons wait.',
        advice: `Put the right upstream.api_key into the configuration ${orResume}`,
        ...resume,
      }),
    );
  }
  refused.push(
    ...examineFollowing(serializeUpstream(upstream)).map(({ code, ...words }) =>
      warn(code, { ...words, command: 'latchkey doctor' }),
    ),
  );
  if (upstream.state === 'paused') {
    const text = `Sync has been paused since ${formatDatetime(upstream.since)}: no change is sent.`;
    return [...refused, warn('sync_paused', { text, advice: 'Resume it.', command: 'latchkey sync resume' })];
  }
  if (upstream.state !== 'down') return refused;
  const why = upstream.lastError === null ? '.' : `: ${sentence(upstream.lastError)}`;
  const down = warn('upstream_down', {
    text: `The upstream has been unavailable since ${formatDatetime(upstream.since)}${why}`,
    advice: 'Changes wait, and are sent by themselves. The doctor says what is wrong.',
    command: 'latchkey doctor',
    page: 'doctor',
  });
  return [...refused, down];
}

function outboxAttention({ outbox }: Status, { maxPending }: Settings): Attention[] {
  if (outbox === null) return [];
  const { depth, held } = outbox;
  const unfinished = depth.pending + depth.in_flight + depth.uncertain;
  const found: Attention[] = [];
  if (maxPending !== null && unfinished >= maxPending) {
    const waiting = counted(unfinished, 'change waits', 'changes wait');
    found.push(
      fail('outbox_full', {
        text: `${waiting} for the upstream: further changes are refused (sync.max_pending).`,
        advice: 'Find out why they are not sent.',
        command: 'latchkey outbox list',
        page: 'outbox',
      }),
    );
  }
  const add = (code: string, state: OperationState, text: string): void => {
    const advice = 'See what each decision would do, and decide.';
    const command = `latchkey outbox list --state ${state}`;
    found.push(warn(code, { text, advice, command, page: `outbox?state=${state}` }));
  };
  if (held > 0) {
    const may = counted(held, 'change may have been applied', 'changes may have been applied');
    add('operations_held', 'uncertain', `${may}: a person must decide.`);
  }
  if (depth.conflicted > 0) {
    const were = counted(depth.conflicted, 'change was', 'changes were');
    add('operations_conflicted', 'conflicted', `${were} not applied: the upstream had changed before.`);
  }
  if (depth.dead > 0) {
    const were = counted(depth.dead, 'change was', 'changes were');
    add('operations_dead', 'dead', `${were} refused by the upstream.`);
  }
  return found;
}

/** At an agent: licenses that are no longer answered. */
function expiredAttention({ upstream, records }: Status): Attention[] {
  const expired = upstream === null ? 0 : (records?.expired ?? 0);
  if (expired === 0) return [];
  const text = `${counted(expired, 'license')} cannot be verified: the upstream confirmed them too long ago.`;
  const advice = 'They are read again as soon as a program asks for them and the upstream answers.';
  return [warn('licenses_expired', { text, advice, page: 'licenses' })];
}

/** At an agent: licenses that the store no longer knows. */
function missingAttention({ missing }: Status): Attention[] {
  if (missing === null) return [];
  const { text, advice } = describeMissing({ ...missing, since: formatDatetime(missing.since) });
  const words = { text: sentence(capitalized(text)), advice: sentence(capitalized(advice)) };
  return [warn('licenses_missing', { ...words, command: 'latchkey license list', page: 'licenses' })];
}

function webhookAttention({ webhooks }: Status): Attention[] {
  const { paused = 0, failing = 0 } = webhooks ?? {};
  const words = { command: 'latchkey webhook list', page: 'webhooks' };
  const found: Attention[] = [];
  if (paused > 0) {
    const text = `${counted(paused, 'webhook endpoint is', 'webhook endpoints are')} paused: events wait, and are removed after 30 days.`;
    found.push(
      fail('webhooks_paused', { text, advice: 'Repair the receiver, and resume the endpoint.', ...words }),
    );
  }
  if (failing > 0) {
    const text = `${counted(failing, 'webhook endpoint does', 'webhook endpoints do')} not take events: they wait.`;
    found.push(
      warn('webhooks_failing', {
        text,
        advice: 'See why. The endpoint is paused after three days.',
        ...words,
      }),
    );
  }
  return found;
}
