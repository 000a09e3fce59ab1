import { ask } from '../client/ask.ts';
import { type CommandEntry, defineCommand, entry, operand, textOption } from '../command.ts';
import { formatFields } from '../text/layout.ts';
import { formatPage, takePage } from '../text/page.ts';
import { type Token, token, tokenList } from '../client/wire.ts';

const path = '/admin/v1/tokens';

const issue = defineCommand(
  (yargs) =>
    yargs
      .options({
        scope: { ...textOption('What it may do: words joined by commas'), demandOption: true },
        product: textOption('Product key; without it, every product of the account'),
        account: textOption('Account id'),
        label: textOption('For yourself'),
      })
      .example('$0 token issue --scope verify,use --product RGsF', 'for one piece of software')
      .example('$0 token issue --scope ops --label prometheus', 'for /metrics and /statusz')
      .epilogue('Scopes: verify, use, manage, coupons:read, coupons:write, ops, admin (all of them)'),
  (args, output) => {
    const scopes = args.scope.split(',').map((scope) => scope.trim());
    const json = { scopes, product_key: args.product, account_id: args.account, label: args.label };
    return ask(args, output, { method: 'POST', path, json }, { schema: token, show: formatNewToken });
  },
);

const list = defineCommand(takePage, (args, output) =>
  ask(
    args,
    output,
    { path, query: { limit: args.limit, offset: args.offset } },
    {
      schema: tokenList,
      show: ({ tokens }, answer) => formatPage(tokens.map(summarize), answer, args.offset),
    },
  ),
);

const revoke = defineCommand(
  (yargs) => yargs.positional('token', operand('Token id, as in token list')),
  (args, output) =>
    ask(
      args,
      output,
      { method: 'DELETE', path: `${path}/${encodeURIComponent(args.token)}` },
      { schema: token, show: (revoked) => `revoked\n${formatFields(summarize(revoked))}` },
    ),
);

/** `token …`. */
export const tokenCommands: readonly CommandEntry[] = [
  entry('issue', 'Issue a token for a piece of software', issue),
  entry('list', 'List tokens, without what is sent as a credential', list),
  entry('revoke <token>', 'Revoke a token: it stops at once', revoke),
];

function summarize({ token_id, scopes, product_key, account_id, label }: Token): {
  id: string;
  scopes: string;
  product: string | null;
  account: string | null;
  label: string | null;
} {
  return { id: token_id, scopes: scopes.join(','), product: product_key, account: account_id, label };
}

function formatNewToken(issued: Token): string {
  const fields = formatFields({ token: issued.token, ...summarize(issued) });
  return `${fields}\n\nThe token is shown only this once.`;
}
