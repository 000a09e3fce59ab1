import { defineRequest } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { formatFields } from '../../format.ts';
import { readInstant } from '../../values.ts';
import { tokenFields, tokensPath } from './token.ts';
import { tokenObject } from '../../../wire/token.ts';

export const command = defineRequest({
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
    ['latchkey token issue --scope sell --product RGsF', 'for a shop: issues keys, reads purchases, refunds'],
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
});
