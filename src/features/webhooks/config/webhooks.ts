import { z } from 'zod';
import type { FeatureSection } from '../../../config/core-sections.ts';
import { signingKeysOf } from '../domain/webhook.ts';
import { rule, section } from '../../../config/section.ts';
import {
  addressRange,
  duration,
  secret,
  secretFile,
  mask,
  type Secret,
} from '../../../config/setting-types.ts';

/** The senders of events. Each has its own form and its own proof (features/webhooks/domain/store-event.ts). */
export const senders = ['payhip', 'gumroad', 'lemonsqueezy', 'standard'] as const;

const maxHooks = 32;

const hook = section(
  z
    .strictObject({
      from: z.enum(senders).meta({
        description:
          'Who sends the events: a store, or `standard` for every sender that follows Standard Webhooks, such as Polar or an authority of Latchkey.',
      }),
      secret: secret.meta({
        description:
          'What proves the sender: the API key (`payhip`), the signing secret (`lemonsqueezy`, `standard`), or the value of `secret` in the query of the URL that you give to the store (`gumroad`, which signs nothing).',
      }),
      secret_file: secretFile('secret'),
    })
    .refine(
      (input) => input.from !== 'standard' || isStandardSecret(input.secret),
      rule(
        ['secret', 'from'],
        'must be the whole secret that the sender shows: 24 to 64 bytes in base64 after whsec_, or at least 24 characters of another form',
      ),
    ),
);

/** The mask stands for a secret whose file could not be read. */
function isStandardSecret(value: Secret): boolean {
  const written = value.reveal();
  return written === mask || signingKeysOf(written).length > 0;
}

const hookName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'must be a name of 1 to 40 lower-case letters, digits, - and _');

const hooks = z
  .record(hookName, hook)
  .refine((value) => Object.keys(value).length <= maxHooks, `must have at most ${maxHooks} names`)
  .prefault({})
  .meta({
    description:
      'The events that an agent accepts from stores at `POST /hooks/v1/NAME`, by name. An event changes nothing by itself: the agent reads the license keys that it is about from the upstream at once.',
  });

const out = section(
  z.strictObject({
    allow: z.array(addressRange).prefault([]).meta({
      description:
        'Addresses that events may be sent to although they are not on the internet, such as `10.1.2.3` or `10.0.0.0/8`. Plain HTTP is only sent to these addresses.',
    }),
    license_expiring: duration.prefault('7d').meta({
      description: 'How long before the end of a license `license.expiring` is sent.',
    }),
  }),
).meta({ description: 'The events that this process sends (`latchkey webhook add`).' });

const webhooks = section(z.strictObject({ in: hooks, out: out.prefault({}) })).meta({
  description: 'Events of stores that this process receives, and events that it sends.',
});

export type WebhookSettings = z.output<typeof webhooks>;

declare module '../../../config/core-sections.ts' {
  interface SectionsOfFeatures {
    readonly webhooks: WebhookSettings;
  }
}

export const webhooksSection: FeatureSection = {
  name: 'webhooks',
  before: 'freshness',
  type: webhooks.prefault({}),
  rules: [
    {
      keeps: (input) => input.upstream !== null || Object.keys(input.webhooks.in).length === 0,
      or: rule(
        ['webhooks', 'upstream'],
        'receives events of a store, which only an agent can use: set upstream.base_url, or remove webhooks.in',
      ),
    },
  ],
};
