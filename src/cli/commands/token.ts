import { type TokenObject, tokenObject } from '../../wire/access.ts';
import { defineList, defineRequest, pathOf } from '../client/request.ts';
import { positional, textOption } from '../command.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';
import { keepOldOption, readInstant, readKeepOld } from '../values.ts';

const tokensPath = '/admin/v1/tokens';

export const commands = [
  defineRequest({
    command: 'issue',
    describe: 'Issue a token for a piece of software',
    builder: {
      scope: { ...textOption('What it may do: scopes, separated by commas'), demandOption: true },
      product: textOption('Product key; without it, every product of the account', 'product'),
      account: textOption('Account id', 'account'),
      label: textOption('A note for yourself'),
      expires: textOption('When it expires: after how long, such as 90d, or a datetime'),
    },
    examples: [
      ['latchkey token issue --scope verify,use --product RGsF', 'for one piece of software'],
      [
        'latchkey token issue --scope sell --product RGsF',
        'for a shop: issues keys, reads purchases, refunds',
      ],
      ['latchkey token issue --scope ops --label prometheus', 'for /metrics and /statusz'],
    ],
    epilogue: 'Scopes: verify, use, manage, coupons:read, coupons:write, sell, ops, admin (all of them)',
    request: ({ scope, product, account, label, expires }) => {
      const scopes = scope.split(',').map((each) => each.trim());
      const expires_at = readInstant('expires', expires, 'after');
      const json = { scopes, product_key: product, account_id: account, label, expires_at };
      return { method: 'POST', path: tokensPath, json };
    },
    view: {
      schema: tokenObject,
      show: (issued) => [
        formatFields({ token: issued.token, ...tokenFields(issued) }),
        'The token is shown only this once.',
      ],
    },
  }),
  defineList({
    command: 'list',
    describe: 'List tokens, but not their secret values',
    builder: {},
    examples: [['latchkey token list --all', 'when each was last used, to find those to revoke']],
    list: { path: tokensPath, member: 'tokens', item: tokenObject, row: tokenFields },
  }),
  defineRequest({
    command: 'rotate <token>',
    describe: 'Give a token another secret; the old one stops at once, or after a while',
    builder: { token: positional('Token id, as in token list', 'token'), 'keep-old': keepOldOption },
    examples: [
      ['latchkey token rotate TOKEN_ID --keep-old 24h', 'its software has a day to change to the new one'],
    ],
    request: (args) => ({
      method: 'POST',
      path: `${pathOf(tokensPath, args.token)}/rotate`,
      json: { keep_old_s: readKeepOld(args.keepOld) },
    }),
    view: {
      schema: tokenObject,
      show: (rotated) => [
        formatFields({
          token: rotated.token,
          'old one until': instant(rotated.old_token_until ?? null),
          ...tokenFields(rotated),
        }),
        'The token is shown only this once.',
      ],
    },
  }),
  defineRequest({
    command: 'revoke <token>',
    describe: 'Revoke a token: it stops at once',
    builder: { token: positional('Token id, as in token list', 'token') },
    examples: [['latchkey token revoke TOKEN_ID', 'requests with it are refused from now on']],
    request: (args) => ({ method: 'DELETE', path: pathOf(tokensPath, args.token) }),
    view: { schema: tokenObject, show: (revoked) => ['revoked', formatFields(tokenFields(revoked))] },
  }),
];

function tokenFields(token: TokenObject): Readonly<Record<string, Cell>> {
  return {
    id: whole(token.token_id),
    scopes: token.scopes.join(','),
    product: token.product_key,
    account: token.account_id,
    label: token.label,
    created: instant(token.created_at),
    'last used': instant(token.last_used_at),
    expires: instant(token.expires_at),
  };
}
