// What the bundler resolves and the compiler does not know.
declare module "*.css" {}
