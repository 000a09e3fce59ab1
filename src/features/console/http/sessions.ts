import { defaultAccountId, type Principal } from '../../../domain/access/principal.ts';
import { licenseKeyFrom } from '../../../domain/license.ts';
import { done, failWith, type Result } from '../../../domain/problem/problem.ts';
import { newSecret } from '../../../service/access/credential.ts';
import { LicenseKeyMask } from './masking.ts';
import type { Clock, Digest, Random } from '../../../service/ports.ts';
import { hourMs, minuteMs } from '../../../domain/time.ts';

/** What a page of the console may do. */
export type ConsoleSession = {
  readonly principal: Principal;
  /** False: the session only reads. */
  readonly isAdmin: boolean;
  /** Masks the license keys in the responses to the session; null: the session gets them whole. */
  readonly mask: LicenseKeyMask | null;
};

/** A sign-in that begins. `expiresAt`: epoch ms. */
export type SignIn = { readonly code: string; readonly secret: string; readonly expiresAt: number };

/** A new session, with the token that only the page gets. `expiresAt`: epoch ms. */
export type StartedSession = {
  readonly token: string;
  readonly isAdmin: boolean;
  readonly expiresAt: number;
};

/** How long a page waits for the confirmation of its code, in ms. */
const signInMs = 5 * minuteMs;
/** How long a page may take to get its session after the confirmation, in ms. */
const exchangeMs = minuteMs;
const sessionMs = 12 * hourMs;
const maxWaiting = 8;
const maxSessions = 16;
const maxUserAgentLength = 200;

type Pending = {
  readonly code: string;
  readonly secretDigest: string;
  /** Epoch ms. */
  readonly createdAt: number;
  readonly userAgent: string | null;
  /** Whether the session may change things; null: a person has not confirmed the code yet. */
  isAdmin: boolean | null;
  /** Monotonic ms. */
  endsAt: number;
};

type Session = ConsoleSession & {
  readonly code: string;
  readonly tokenDigest: string;
  /** Monotonic ms. */
  readonly endsAt: number;
};

type Parts = { clock: Pick<Clock, 'now' | 'monotonic'>; random: Random; digest: Digest };

/** The sign-ins and sessions of the console. They are in memory only, and so end with the process. */
export class ConsoleSessions {
  readonly #parts: Parts;
  readonly #mask: LicenseKeyMask;
  #pending: readonly Pending[] = [];
  #sessions: readonly Session[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#mask = new LicenseKeyMask(parts.random);
  }

  /** Begins a sign-in: the page shows the code, and keeps the secret. */
  begin(userAgent: string | null): Result<SignIn> {
    const { clock, random, digest } = this.#parts;
    const waiting = this.#waiting();
    const [oldest] = waiting;
    if (oldest !== undefined && waiting.length >= maxWaiting) {
      const waitMs = oldest.endsAt - clock.monotonic();
      const detail = `${maxWaiting} pages wait for the confirmation of their codes.`;
      return failWith('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) });
    }
    const secret = newSecret('lks_in', random);
    const pending = {
      code: this.#newCode(),
      secretDigest: digest(secret),
      createdAt: clock.now(),
      userAgent: userAgent?.slice(0, maxUserAgentLength) ?? null,
      isAdmin: null,
      endsAt: clock.monotonic() + signInMs,
    };
    this.#pending = [...this.#live(), pending];
    return done({ code: pending.code, secret, expiresAt: pending.createdAt + signInMs });
  }

  /** The sign-ins that wait for a confirmation, the oldest first. */
  waiting(): readonly Pick<Pending, 'code' | 'createdAt' | 'userAgent'>[] {
    return this.#waiting();
  }

  /** Lets the page with this code get a session. Returns the code as the page shows it. */
  confirm(sent: string, isAdmin: boolean): Result<string> {
    const pending = this.#withCode(sent);
    if (pending === undefined) return unknownSignIn();
    pending.isAdmin = isAdmin;
    pending.endsAt = this.#parts.clock.monotonic() + exchangeMs;
    return done(pending.code);
  }

  /** Ends the sign-in of the page with this code. Returns the code as the page shows it. */
  refuse(sent: string): Result<string> {
    const pending = this.#withCode(sent);
    if (pending === undefined) return unknownSignIn();
    this.#pending = this.#pending.filter((each) => each !== pending);
    return done(pending.code);
  }

  /** A person may type a code in lower case or without the dash. */
  #withCode(sent: string): Pending | undefined {
    const letters = lettersOf(sent);
    return this.#waiting().find(({ code }) => lettersOf(code) === letters);
  }

  /** Gives the page its session, once; null before a person has confirmed its code. */
  exchange(secret: string): Result<StartedSession | null> {
    const { digest } = this.#parts;
    const secretDigest = digest(secret);
    const pending = this.#live().find((each) => each.secretDigest === secretDigest);
    if (pending === undefined) return unknownSignIn();
    if (pending.isAdmin === null) return done(null);
    this.#pending = this.#pending.filter((each) => each !== pending);
    return done(this.#start(pending.code, pending.isAdmin));
  }

  #start(code: string, isAdmin: boolean): StartedSession {
    const { clock, random, digest } = this.#parts;
    const token = newSecret('lks', random);
    const endsAt = clock.monotonic() + sessionMs;
    const mask = isAdmin ? null : this.#mask;
    const session = { code, mask, principal: principalOf(code), isAdmin, tokenDigest: digest(token), endsAt };
    this.#sessions = [...this.#open(), session].slice(-maxSessions);
    return { token, isAdmin, expiresAt: clock.now() + sessionMs };
  }

  /** The session of a token; null if there is none, or none any more. */
  find(tokenDigest: string): ConsoleSession | null {
    const session = this.#sessions.find((each) => each.tokenDigest === tokenDigest);
    return session === undefined || session.endsAt <= this.#parts.clock.monotonic() ? null : session;
  }

  /** Ends the session of a principal. Returns the code of its sign-in. */
  end({ credential }: Principal): Result<string> {
    const session = this.#sessions.find(({ principal }) => principal.credential === credential);
    if (session === undefined) return unknownSignIn();
    this.#sessions = this.#sessions.filter((each) => each !== session);
    return done(session.code);
  }

  /** A code that no other page shows. */
  #newCode(): string {
    const letters = licenseKeyFrom(this.#parts.random.bytes(20)).replaceAll('-', '');
    const code = `${letters.slice(0, 3)}-${letters.slice(3, 6)}`;
    return this.#pending.some((each) => each.code === code) ? this.#newCode() : code;
  }

  #live(): readonly Pending[] {
    const now = this.#parts.clock.monotonic();
    return this.#pending.filter(({ endsAt }) => now < endsAt);
  }

  #waiting(): readonly Pending[] {
    return this.#live().filter(({ isAdmin }) => isAdmin === null);
  }

  #open(): readonly Session[] {
    const now = this.#parts.clock.monotonic();
    return this.#sessions.filter(({ endsAt }) => now < endsAt);
  }
}

function lettersOf(code: string): string {
  return code.toUpperCase().replaceAll('-', '');
}

function unknownSignIn(): Result<never> {
  return failWith('sign_in_not_found', 'It is unknown, or has expired, was refused or is over.');
}

/** The operator, under the name of the code that the person has compared. */
function principalOf(code: string): Principal {
  return {
    credential: `console:${code}`,
    scopes: ['admin'],
    tenant: { accountId: defaultAccountId, productKey: null },
    isOperator: true,
  };
}
