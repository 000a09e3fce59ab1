import { z } from 'zod';
import type { FeatureSection } from '../../../config/core-sections.ts';
import { section } from '../../../config/section.ts';

const consoleSettings = section(
  z.strictObject({
    enabled: z.boolean().prefault(true).meta({
      description: 'Whether the page is served, on `listen.tcp` if all its addresses are loopback addresses.',
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
