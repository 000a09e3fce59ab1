import { z } from 'zod';
import { defineRequest } from '../client/ask.ts';
import { defineList } from '../client/list.ts';
import { type Command, operand, textOption } from '../command.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';
import { readInstant } from '../instant.ts';

const path = '/admin/v1/tokens';

const token = z.object({
  token_id: z.string(),
  // Only when it was just issued.
  token: z.string().optional(),
  scopes: z.array(z.string()),
  product_key: z.string().nullable(),
  account_id: z.string().nullable(),
  label: z.string().nullable(),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
  expires_at: z.string().nullable(),
});

/** `token issue`. */
export const issueToken: Command = defineRequest(
  (syntax) =>
    syntax
      .options({
        scope: { ...textOption('What it may do: scopes, separated by commas'), required: true },
        product: textOption('Product key; without it, every product of the account', 'product'),
        account: textOption('Account id', 'account'),
        label: textOption('A note for yourself'),
        expires: textOption('When it expires: after how long, such as 90d, or a datetime'),
      })
      .example('latchkey token issue --scope verify,use --product RGsF', 'for one piece of software')
      .example(
        'latchkey token issue --scope sell --product RGsF',
        'for a shop: issues keys, reads purchases, refunds',
      )
      .example('latchkey token issue --scope ops --label prometheus', 'for /metrics and /statusz')
      .epilogue('Scopes: verify, use, manage, coupons:read, coupons:write, sell, ops, admin (all of them)'),
  ({ scope, product, account, label, expires }) => {
    const scopes = scope.split(',').map((each) => each.trim());
    const expires_at = readInstant('expires', expires, 'after');
    const json = { scopes, product_key: product, account_id: account, label, expires_at };
    return { method: 'POST', path, json };
  },
  {
    schema: token,
    show: (issued) => [
      formatFields({ token: issued.token, ...tokenFields(issued) }),
      'The token is shown only this once.',
    ],
  },
);

/** `token list`. */
export const listTokens: Command = defineList(
  { path, member: 'tokens', item: token, row: tokenFields },
  (syntax) => syntax.example('latchkey token list --all', 'when each was last used, to find those to revoke'),
);

/** `token revoke`. */
export const revokeToken: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('token', operand('Token id, as in token list', 'token'))
      .example('latchkey token revoke TOKEN_ID', 'whoever sends it is refused from now on'),
  (args) => ({ method: 'DELETE', path: `${path}/${encodeURIComponent(args.token)}` }),
  {
    schema: token,
    show: (revoked) => ['revoked', formatFields(tokenFields(revoked))],
  },
);

function tokenFields(it: z.infer<typeof token>): Readonly<Record<string, Cell>> {
  return {
    id: whole(it.token_id),
    scopes: it.scopes.join(','),
    product: it.product_key,
    account: it.account_id,
    label: it.label,
    created: instant(it.created_at),
    'last used': instant(it.last_used_at),
    expires: instant(it.expires_at),
  };
}
