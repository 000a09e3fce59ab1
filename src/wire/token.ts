import { z } from 'zod';
import { formatDatetime } from '../domain/time.ts';
import { type Token, scopes } from '../domain/access/principal.ts';
import type { TokenWithSecret } from '../service/access/token.ts';
import { datetime, someOf, text, instant, parameters } from './parameters.ts';
import { serializerOf } from './server/shape.ts';

export const tokenObject = z
  .object({
    token_id: z.string(),
    token: z.string().optional(),
    scopes: z.array(z.string()).readonly(),
    product_key: z.string().nullable(),
    account_id: z.string().nullable(),
    label: z.string().nullable(),
    created_at: instant,
    last_used_at: instant.nullable(),
    expires_at: instant.nullable(),
    old_token_until: instant
      .optional()
      .describe('Until when the secret before a rotation stays valid; only in the response to the rotation.'),
  })
  .meta({ id: 'Token' });

export type TokenObject = z.infer<typeof tokenObject>;

export const tokenList = z.object({ tokens: z.array(tokenObject) }).meta({ id: 'TokenList' });

export const tokenParameters = parameters(
  {
    scopes: someOf(scopes),
    product_key: text(100).optional(),
    account_id: text(100).optional(),
    label: text(200).optional(),
    expires_at: datetime.optional(),
  },
  // A misspelt `expires_at` would make a token that never expires.
  { unknown: 'refused', id: 'NewToken' },
);

const writeToken = serializerOf(tokenObject.omit({ token: true, old_token_until: true }));

/** `products`: the products of an agent, whose tokens hold the id of a product. */
export function serializeToken(
  { productKey, ...same }: Token,
  products: { keyOf(id: string): string } | null,
): TokenObject {
  const key = productKey && (products?.keyOf(productKey) ?? productKey);
  return writeToken({ ...same, productKey: key });
}

/** The token with its secret, shown on issuing and rotating only. */
export function serializeTokenSecret(
  { token, secret, oldUntil = null }: TokenWithSecret & { oldUntil?: number | null },
  products: Parameters<typeof serializeToken>[1],
): TokenObject {
  const until = oldUntil === null ? {} : { old_token_until: formatDatetime(oldUntil) };
  return { ...serializeToken(token, products), token: secret, ...until };
}
