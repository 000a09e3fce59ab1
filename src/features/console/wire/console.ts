import { z } from 'zod';
import { formatDatetime } from '../../../domain/time.ts';
import { boolean, instant, oneOf, parameters, text } from '../../../wire/parameters.ts';
import { serializerOf, type ProgramValue } from '../../../wire/shape.ts';
import {
  insideUpstream,
  upstreamObject,
  insideOutbox,
  issuerObject,
  leasesObject,
  outboxObject,
  preloadObject,
  recordsObject,
  storageState,
  totalsObject,
} from '../../../wire/status.ts';
import type { Series, ShopSeries } from '../domain/series.ts';
import type { Overview } from '../service/overview.ts';

const optionList = z
  .array(z.string())
  .readonly()
  .describe('The options that a command needs to reach this process, such as `--state-dir` and its value.');

/** What needs a person, with the remedy. */
export const attentionObject = z
  .object({
    code: z.string().describe('A short, stable name of the problem.'),
    level: z.enum(['warn', 'fail']),
    text: z.string().describe('What is wrong, in a sentence.'),
    advice: z.string().describe('What to do.'),
    command: z.string().nullable().describe('A command line that helps; null: there is none.'),
    page: z.string().nullable().describe('The page of the console about it, such as `outbox?state=dead`.'),
  })
  .meta({ id: 'Attention' });

export type AttentionObject = z.infer<typeof attentionObject>;

/**
 * `GET /admin/v1/overview`: what the first page shows. It has instants and no ages, so that it stays the same, with the
 * same ETag, while nothing happens.
 */
export const overviewObject = z
  .object({
    role: z.enum(['authority', 'agent', 'holder']),
    version: z.string(),
    instance: z.string(),
    options: optionList,
    currency: z.string().nullable().describe('Of all amounts, such as `EUR` (`console.currency`).'),
    started_at: instant,
    attention: z.array(attentionObject).describe('What needs a person, the most urgent first.'),
    upstream: upstreamObject.nullable().describe('Null unless this is an agent.'),
    outbox: outboxObject
      .omit({ oldest_age_s: true })
      .extend({
        oldest_at: instant.nullable().describe('When the oldest unfinished operation was recorded.'),
      })
      .meta({ id: 'OverviewOutbox' })
      .nullable()
      .describe('Null unless this is an agent.'),
    records: recordsObject.nullable().describe('Null until the database has answered for the first time.'),
    leases: leasesObject.nullable().describe('Null unless this is a holder.'),
    issuer: issuerObject.nullable().describe('Null on a holder, and until leases are set up.'),
    preload: preloadObject.nullable(),
    products: z
      .array(z.object({ product_key: z.string(), name: z.string() }).meta({ id: 'NamedProduct' }))
      .readonly()
      .nullable()
      .describe('The products of an agent whose names it knows. Null unless this is an agent.'),
    storage: storageState,
    certificate_ends_at: instant.nullable().describe('Null for plain HTTP.'),
    totals: totalsObject,
  })
  .meta({ id: 'Overview' });

export type OverviewObject = z.infer<typeof overviewObject>;

const writeOverview = serializerOf(overviewObject);

export function serializeOverview(overview: Overview): OverviewObject {
  const { upstream, outbox, oldestAt, listeners } = overview;
  return writeOverview({
    ...overview,
    upstream: upstream && insideUpstream(upstream),
    outbox: outbox && {
      ...insideOutbox(outbox),
      oldestAt: outbox.oldestAgeMs === null ? null : oldestAt,
    },
    certificateEndsAt: listeners.tls && listeners.tls.notAfter,
  });
}

const values = z.array(z.number().nullable());

/** `GET /admin/v1/series`. Each array has one value for each step, the oldest first; null: nothing was recorded. */
export const seriesObject = z
  .object({
    start: instant.describe('When the first step begins.'),
    step_s: z.union([z.literal(60), z.literal(600)]),
    verifies: values.describe('Answered verifies in the step.'),
    uses: values.describe('Recorded uses in the step.'),
    pending: values.describe('Unfinished operations of the outbox at the end of the step.'),
    oldest_age_s: values.describe('The age of the oldest unfinished operation at the end of the step.'),
    upstream: z
      .array(z.enum(['up', 'down', 'paused', 'unknown']).nullable())
      .describe('The worst state of the upstream in the step.'),
    shop: z
      .object({
        start: instant.describe('When the first step begins. The last step goes on.'),
        sales: z.array(z.int()).readonly(),
        refunds: z.array(z.int()).readonly(),
        activations: z
          .array(z.int())
          .readonly()
          .describe('Devices that asked for a seat for the first time.'),
      })
      .meta({ id: 'ShopSeries' })
      .nullable()
      .describe('Null unless this is an authority.'),
  })
  .meta({ id: 'Series' });

export type SeriesObject = z.infer<typeof seriesObject>;

/** `GET /admin/v1/series`. */
export const seriesQuery = parameters({
  step: oneOf(['60', '600'])
    .prefault('60')
    .transform((seconds) => (seconds === '60' ? 60 : 600))
    .meta({
      description: '60: the minutes of the last 24 hours. 600: ten minutes each of the last 30 days.',
    }),
});

export function serializeSeries({ start, stepS, steps }: Series, shop: ShopSeries | null): SeriesObject {
  return {
    start: formatDatetime(start),
    step_s: stepS,
    verifies: steps.map((step) => step?.verifies ?? null),
    uses: steps.map((step) => step?.uses ?? null),
    pending: steps.map((step) => step?.pending ?? null),
    oldest_age_s: steps.map((step) => step?.oldestAgeS ?? null),
    upstream: steps.map((step) => step?.upstream ?? null),
    shop: shop && { ...shop, start: formatDatetime(shop.start) },
  };
}

/** `GET /admin/v1/doctor`. */
export const doctorObject = z
  .object({
    ok: z.boolean().describe('No finding has the level `fail`.'),
    findings: z.array(
      z
        .object({ level: z.enum(['ok', 'warn', 'fail']), what: z.string(), advice: z.string().nullable() })
        .meta({ id: 'Finding' }),
    ),
  })
  .meta({ id: 'Doctor' });

export type DoctorObject = z.infer<typeof doctorObject>;

/** `GET /admin/v1/config`. */
export const configObject = z
  .object({
    file: z.string().nullable().describe('The configuration file; null: there is none.'),
    settings: z.array(
      z
        .object({
          key: z.string().describe('As in the configuration file, such as `upstream.timeout`.'),
          value: z.string().describe('In the notation of the file; secrets are `***`.'),
          source: z.enum(['default', 'file', 'environment', 'option']),
          origin: z.string().nullable().describe('The line of the file, the variable or the option.'),
        })
        .meta({ id: 'Setting' }),
    ),
  })
  .meta({ id: 'Config' });

export type ConfigObject = z.infer<typeof configObject>;

/** `POST /console/v1/sign-ins`: the code that a person compares, and the secret that only the page knows. */
export const signInObject = z
  .object({ code: z.string(), secret: z.string(), expires_at: instant, options: optionList })
  .meta({ id: 'SignIn' });

export type SignInObject = z.infer<typeof signInObject>;

/** `POST /console/v1/sessions`: the session, or null while the command has not confirmed the code. */
export const sessionObject = z
  .object({
    session: z
      .object({ token: z.string(), admin: z.boolean(), expires_at: instant })
      .meta({ id: 'StartedSession' })
      .nullable(),
  })
  .meta({ id: 'ConsoleSession' });

export type SessionObject = z.infer<typeof sessionObject>;

/** `GET /admin/v1/console/sign-ins`: pages that wait for the confirmation of their code. */
export const waitingSignInList = z
  .object({
    url: z.string().describe('The address of the page.'),
    sign_ins: z.array(
      z
        .object({ code: z.string(), created_at: instant, user_agent: z.string().nullable() })
        .meta({ id: 'WaitingSignIn' }),
    ),
  })
  .meta({ id: 'WaitingSignIns' });

export type WaitingSignInList = z.infer<typeof waitingSignInList>;

/** `POST /console/v1/sessions`. */
export const sessionParameters = parameters({ secret: text(200) }, { id: 'NewConsoleSession' });

/** `POST /admin/v1/console/sign-ins/:code/confirm`. */
export const confirmation = parameters(
  { admin: boolean.prefault(false).describe('Whether the session may change things.') },
  { id: 'SignInConfirmation' },
);

export const serializeSignIn = serializerOf(signInObject);

const writeSession = serializerOf(sessionObject);

export function serializeSession(
  session: { token: string; isAdmin: boolean; expiresAt: number } | null,
): SessionObject {
  return writeSession({ session: session && { ...session, admin: session.isAdmin } });
}

const writeWaiting = serializerOf(waitingSignInList);

export function serializeWaiting(
  url: string,
  signIns: ProgramValue<typeof waitingSignInList>['signIns'],
): WaitingSignInList {
  return writeWaiting({ url, signIns });
}

/** The license keys that are members of a response, wherever they are. */
export function keysOfResponse(body: unknown): readonly string[] {
  if (Array.isArray(body)) return body.flatMap(keysOfResponse);
  if (typeof body !== 'object' || body === null) return [];
  const { license_key: key, replaced_by: newKey } = body as { license_key?: unknown; replaced_by?: unknown };
  const own = [key, newKey].filter((each) => typeof each === 'string');
  return [...own, ...Object.values(body).flatMap(keysOfResponse)];
}
