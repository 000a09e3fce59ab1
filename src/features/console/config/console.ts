import { z } from 'zod';
import type { FeatureSection } from '../../../config/core-sections.ts';
import { section } from '../../../config/section.ts';
import { optional, textual } from '../../../config/setting-types.ts';

const currency = textual({ expected: 'three letters, such as EUR' }, (text) =>
  /^[A-Za-z]{3}$/.test(text) ? text.toUpperCase() : undefined,
);

const consoleSettings = section(
  z.strictObject({
    enabled: z.boolean().prefault(true).meta({
      description: 'Whether the page is served, on `listen.tcp` if all its addresses are loopback addresses.',
    }),
    currency: optional(currency).meta({
      description: 'The currency of all amounts that the page shows, such as `EUR`.',
    }),
  }),
).meta({
  description: 'The page of the console (`latchkey console`).',
  reload: 'restart',
});

export type ConsoleSettings = z.output<typeof consoleSettings>;

declare module '../../../config/core-sections.ts' {
  interface SectionsOfFeatures {
    readonly console: ConsoleSettings;
  }
}

export const consoleSection: FeatureSection = {
  name: 'console',
  before: 'log',
  type: consoleSettings.prefault({}),
};
