import { z } from 'zod';
import type { Token } from '../domain/access/token.ts';
import { formatDatetime } from '../domain/datetime.ts';
import { scopes, type Scope } from '../domain/access/scope.ts';
import type { TokenWithSecret } from '../service/access/token.ts';
import { datetime, someOf, text } from './types.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type TokenObject = {
  token_id: string;
  token?: string | undefined;
  scopes: readonly string[];
  product_key: string | null;
  account_id: string | null;
  label: string | null;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
};

const instant = z.iso.datetime({ offset: true });

export const tokenObject: z.ZodType<TokenObject> = z
  .object({
    token_id: z.string(),
    token: z.string().optional(),
    scopes: z.array(z.string()),
    product_key: z.string().nullable(),
    account_id: z.string().nullable(),
    label: z.string().nullable(),
    created_at: instant,
    last_used_at: instant.nullable(),
    expires_at: instant.nullable(),
  })
  .meta({ id: 'Token' });

export const tokenList: z.ZodType<{ tokens: TokenObject[] }> = z
  .object({ tokens: z.array(tokenObject) })
  .meta({ id: 'TokenList' });

export const tokenParameters: ParameterSet<{
  scopes: readonly Scope[];
  productKey?: string | undefined;
  accountId?: string | undefined;
  label?: string | undefined;
  expiresAt?: number | undefined;
}> = parameters(
  {
    scopes: someOf(scopes),
    product_key: text(100).optional(),
    account_id: text(100).optional(),
    label: text(200).optional(),
    expires_at: datetime.optional(),
  },
  // A misspelt end would make a token without one.
  { unknown: 'refused', id: 'NewToken' },
);

/** `products`: the products of an agent, whose tokens hold the id of a product. */
export function serializeToken(
  { tokenId, scopes: its, productKey, accountId, label, ...at }: Token,
  products: { keyOf(id: string): string } | null,
): TokenObject {
  return {
    token_id: tokenId,
    scopes: its,
    product_key: productKey === null ? null : (products?.keyOf(productKey) ?? productKey),
    account_id: accountId,
    label,
    created_at: formatDatetime(at.createdAt),
    last_used_at: at.lastUsedAt === null ? null : formatDatetime(at.lastUsedAt),
    expires_at: at.expiresAt === null ? null : formatDatetime(at.expiresAt),
  };
}

/** The token with its secret, shown on issuing only. */
export function serializeTokenSecret(
  { token, secret }: TokenWithSecret,
  products: Parameters<typeof serializeToken>[1],
): TokenObject {
  return { ...serializeToken(token, products), token: secret };
}
