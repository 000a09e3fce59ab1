import { describe, expect, test } from 'vitest';
import { dialects } from '../../support/stores/dialects.ts';
import { describeRoutes } from '../../../src/http/openapi/document.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { missingTool, npmTools, requireTool } from '../../support/reference/api-tools.ts';

type Finding = { code: string | number; message: string; path: readonly (string | number)[] };

/** The findings of Spectral's recommended OpenAPI rules in a description. */
async function findings(description: object): Promise<string[]> {
  const { Spectral } = requireTool('@stoplight/spectral-core') as {
    Spectral: new () => {
      setRuleset(rules: object): void;
      run(document: object): Promise<readonly Finding[]>;
    };
  };
  const { oas } = requireTool('@stoplight/spectral-rulesets') as { oas: object };
  const spectral = new Spectral();
  spectral.setRuleset({ extends: [[oas, 'recommended']] });
  const found = await spectral.run(description);
  return found.map(({ code, message, path }) => `${code}: ${message} ${path.join('/')}`);
}

const missing = missingTool(`${npmTools}/@stoplight/spectral-core`);

describe.skipIf(missing !== '')(`Spectral${missing}`, () => {
  test.each(['specification', 'payhip'] as const)(
    'Spectral finds nothing in the OpenAPI description in the dialect %s',
    async (name) => {
      const dialect = dialects[name];
      const description = describeRoutes(await routesOf(dialect), { version: '1.2.3', dialect });
      expect(await findings(description)).toEqual([]);
    },
  );

  test('Spectral finds errors in an invalid description', async () => {
    expect(
      await findings({ openapi: '3.1.0', info: { title: 'Nothing', version: '1' }, paths: {} }),
    ).not.toEqual([]);
  });
});
