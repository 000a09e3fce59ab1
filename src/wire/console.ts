import { z } from 'zod';
import { instant } from './parameters.ts';

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
  })
  .meta({ id: 'Series' });

export type SeriesObject = z.infer<typeof seriesObject>;

/** `GET /admin/v1/doctor`. */
export const doctorObject = z
  .object({
    ok: z.boolean().describe('No finding has the level `fail`.'),
    findings: z.array(
      z.object({ level: z.enum(['ok', 'warn', 'fail']), what: z.string(), advice: z.string().nullable() }),
    ),
  })
  .meta({ id: 'Doctor' });

export type DoctorObject = z.infer<typeof doctorObject>;

/** `GET /admin/v1/config`. */
export const configObject = z
  .object({
    file: z.string().nullable().describe('The configuration file; null: there is none.'),
    settings: z.array(
      z.object({
        key: z.string().describe('As in the configuration file, such as `upstream.timeout`.'),
        value: z.string().describe('In the notation of the file; secrets are `***`.'),
        source: z.enum(['default', 'file', 'environment', 'option']),
        origin: z.string().nullable().describe('The line of the file, the variable or the option.'),
      }),
    ),
  })
  .meta({ id: 'Config' });

export type ConfigObject = z.infer<typeof configObject>;

/** `POST /console/v1/sign-ins`: the code that a person compares, and the secret that only the page knows. */
export const signInObject = z
  .object({ code: z.string(), secret: z.string(), expires_at: instant })
  .meta({ id: 'SignIn' });

export type SignInObject = z.infer<typeof signInObject>;

/** `POST /console/v1/sessions`: the session, or null while the command has not confirmed the code. */
export const sessionObject = z
  .object({
    session: z.object({ token: z.string(), admin: z.boolean(), expires_at: instant }).nullable(),
  })
  .meta({ id: 'ConsoleSession' });

export type SessionObject = z.infer<typeof sessionObject>;

/** `GET /admin/v1/console/sign-ins`: pages that wait for the confirmation of their code. */
export const waitingSignInList = z
  .object({
    sign_ins: z.array(
      z.object({ code: z.string(), created_at: instant, user_agent: z.string().nullable() }),
    ),
  })
  .meta({ id: 'WaitingSignIns' });

export type WaitingSignInList = z.infer<typeof waitingSignInList>;
