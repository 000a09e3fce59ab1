import { z } from 'zod';
import type { Token } from '../../domain/token.ts';
import { scopes, type Scope } from '../../domain/scope.ts';
import type { TokenWithSecret } from '../../service/access/token.ts';
import { someOf, text } from './kind.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type TokenObject = {
  token_id: string;
  token?: string | undefined;
  scopes: readonly string[];
  product_key: string | null;
  account_id: string | null;
  label: string | null;
};

export const tokenObject: z.ZodType<TokenObject> = z
  .object({
    token_id: z.string(),
    token: z.string().optional(),
    scopes: z.array(z.string()),
    product_key: z.string().nullable(),
    account_id: z.string().nullable(),
    label: z.string().nullable(),
  })
  .meta({ id: 'Token' });

export const tokenList: z.ZodType<{ tokens: TokenObject[] }> = z.object({ tokens: z.array(tokenObject) });

export const tokenParameters: ParameterSet<{
  scopes: readonly Scope[];
  productKey?: string | undefined;
  accountId?: string | undefined;
  label?: string | undefined;
}> = parameters({
  scopes: someOf(scopes),
  product_key: text(100).optional(),
  account_id: text(100).optional(),
  label: text(200).optional(),
});

export function presentToken({ tokenId, scopes: its, productKey, accountId, label }: Token): TokenObject {
  return { token_id: tokenId, scopes: its, product_key: productKey, account_id: accountId, label };
}

/** The token with its secret, shown on issuing only. */
export function presentTokenSecret({ token, secret }: TokenWithSecret): TokenObject {
  return { ...presentToken(token), token: secret };
}
